package edge

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/slotgate/slotgate/rules"
)

// certificate is the server's certificate, read again when its files change. It
// is safe for concurrent use.
type certificate struct {
	files rules.TLSConfig
	log   *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	read    [2]fileVersion // of the files when they were last read
	looked  time.Time
}

// fileVersion changes with a file. Renewal tools write a new file or move a link.
type fileVersion struct {
	modified time.Time
	size     int64
}

// lookEvery bounds how often handshakes look at the files.
const lookEvery = time.Second

func newCertificate(files rules.TLSConfig, log *slog.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log, looked: time.Now()}
	c.read = c.versions()
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("server.tls: %w", err)
	}
	return c, nil
}

// get is tls.Config.GetCertificate. While new files are not a pair, as between
// the writes of the one and the other, the last good one serves.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		c.refresh()
	}
	return c.current, nil
}

func (c *certificate) refresh() {
	versions := c.versions()
	if versions == c.read {
		return
	}
	c.read = versions
	if err := c.load(); err != nil {
		c.log.Warn("server.tls: the changed certificate cannot be used; the last one goes on serving", "error", err)
		return
	}
	c.log.Info("server.tls: the changed certificate is in use")
}

func (c *certificate) load() error {
	cert, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err == nil {
		c.current = &cert
	}
	return err
}

func (c *certificate) versions() (v [2]fileVersion) {
	for i, name := range []string{c.files.CertFile, c.files.KeyFile} {
		if info, err := os.Stat(name); err == nil {
			v[i] = fileVersion{info.ModTime(), info.Size()}
		}
	}
	return v
}
