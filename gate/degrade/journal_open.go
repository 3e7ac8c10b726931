package degrade

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/slotgate/slotgate/gate/store/seal"
)

// maxJournal is more than a journal can come to: see maxWaiting and journalSlack.
const maxJournal = 8 * maxWaiting

// openJournal takes a journal file into use, making it where there is none, and
// returns the entries that still wait, in order. The file holds idempotency keys,
// credentials (the scope of a key) and answers, since the store needs them, as they
// are where keys do not seal them: it is made with mode 0600, and one that others may
// read is refused.
//
// While it is open, PATH.lock is locked; PATH.new is a file that is to take its
// place. One that is damaged before its end is kept as PATH.damaged-N.
func openJournal(path string, keys *seal.Keys, log *slog.Logger) (*journal, []*entry, error) {
	return (&journal{path: path, keys: keys, log: log, create: createFile}).open()
}

func (j *journal) open() (_ *journal, waiting []*entry, err error) {
	if j.lock, err = lockJournal(j.path + ".lock"); err != nil {
		return nil, nil, fmt.Errorf("journal %s: %w", j.path, err)
	}
	h, err := j.read()
	if err == nil {
		err = j.start(h)
	}
	if err != nil {
		if j.file != nil {
			j.file.file.Close()
		}
		j.lock.Close()
		return nil, nil, fmt.Errorf("journal %s: %w", j.path, err)
	}
	return j, h.waiting, nil
}

// read replays the file and says what of it is lost.
func (j *journal) read() (history, error) {
	file, err := readOwnFile(j.path)
	if err != nil {
		return history{}, err
	}
	h, err := replay(file, j.keys)
	if err != nil {
		return h, err
	}
	if h.damage > 0 {
		kept, err := keepAside(j.path)
		if err != nil {
			return h, fmt.Errorf("damaged at byte %d, and no copy could be kept (%w): move the file away", h.damage, err)
		}
		j.log.Error("the journal is damaged: settlements in it are lost, those that could be read are sent",
			"journal", j.path, "at_byte", h.damage, "read", len(h.waiting), "kept_as", kept)
	}
	if h.torn > 0 {
		j.log.Warn("the journal's last write was cut short and is dropped",
			"journal", j.path, "bytes", h.torn)
	}
	if len(h.waiting) > 0 {
		j.log.Info("settlements of an earlier run wait for the store", "journal", j.path, "waiting", len(h.waiting))
	}
	return h, nil
}

// readOwnFile reads a regular file that nobody else may read; nil where there is
// none.
func readOwnFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others may use it (mode %04o), and it holds credentials: chmod 600 it", info.Mode().Perm())
	case info.Size() > maxJournal:
		return nil, fmt.Errorf("%d bytes are more than any journal has: name another file", info.Size())
	}
	return os.ReadFile(path)
}

// keepAside gives the file a second name, for a person to look at.
func keepAside(path string) (name string, err error) {
	for n := 1; ; n++ {
		name = path + ".damaged-" + strconv.Itoa(n)
		if err = os.Link(path, name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// lockJournal locks for as long as the returned file is open, against other
// processes and this one.
func lockJournal(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		f.Close()
		return nil, errors.New("another gate has it open: each needs a journal of its own")
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
