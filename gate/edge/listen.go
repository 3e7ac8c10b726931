package edge

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

// Listen opens server.listen: host:port, or unix:/path. A socket that a gate left
// behind when it was killed is replaced; one on which somebody answers is not. As
// with other servers every local user may connect: who may is decided by the
// permissions of the folder.
func Listen(address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		return net.Listen("tcp", address)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil { // #nosec G302 -- see above
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is there and is no socket: remove it or choose another path", path)
	}
	nc, err := net.Dial("unix", path)
	if err == nil {
		_ = nc.Close()
		return fmt.Errorf("%s: another process serves this socket", path)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return err
}
