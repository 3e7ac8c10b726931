package degrade

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/slotgate/slotgate/gate/store/seal"
)

// file is what a journal asks of its open file.
type file interface {
	io.WriteCloser
	Sync() error
}

// createFile makes a new file that only its owner may read.
func createFile(path string) (file, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// journalFile appends records to a file under its mark.
type journalFile struct {
	file   file
	out    *bufio.Writer
	mark   mark
	keys   *seal.Keys
	size   int64
	record []byte // scratch
}

// newJournalFile begins a file with its header.
func newJournalFile(f file, keys *seal.Keys) *journalFile {
	header, m := appendHeader(nil)
	out := bufio.NewWriterSize(f, 64<<10)
	out.Write(header) // an error shows at the next flush
	return &journalFile{file: f, out: out, mark: m, keys: keys, size: int64(len(header))}
}

// append writes entries that wait, and the seqs of those that no longer do. After
// an error the file is only to be closed.
func (f *journalFile) append(added []*entry, taken []uint64) error {
	for _, e := range added {
		f.write(appendAdd(f.record[:0], f.mark, f.keys, e))
	}
	if len(taken) > 0 {
		f.write(appendDone(f.record[:0], f.mark, taken))
	}
	return f.out.Flush()
}

func (f *journalFile) write(record []byte) {
	f.record = record
	f.size += int64(len(record))
	f.out.Write(record) // an error shows at the flush
}

func (f *journalFile) sync() error { return f.file.Sync() }

func (f *journalFile) close() error { return errors.Join(f.file.Sync(), f.file.Close()) }

// rewrite puts a new file, of just these entries, in the place of the journal's.
// Where it fails the old file stays as it is.
func (j *journal) rewrite(entries []*entry) error {
	path := j.path + ".new"
	f, err := j.create(path)
	if err != nil {
		return err
	}
	fresh := newJournalFile(f, j.keys)
	err = fresh.append(entries, nil)
	if err == nil {
		err = fresh.sync()
	}
	if err == nil {
		err = os.Rename(path, j.path)
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return err
	}
	if j.file != nil {
		j.file.file.Close() // its name is gone: what it says no longer counts
	}
	j.file = fresh
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a rename last.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
