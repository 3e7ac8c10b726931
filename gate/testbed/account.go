package testbed

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// serviceAccount returns the account that runs a server which refuses to run as
// root: nil for our own, the named one when we are root.
func serviceAccount(name, install string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("%s (%w)", install, err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("testbed: user %s: %w", name, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("testbed: user %s: %w", name, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// serviceFolder makes a temporary folder that belongs to the account; nil stands
// for our own.
func serviceFolder(name string, account *syscall.Credential) (string, error) {
	folder, err := os.MkdirTemp("", "testbed-"+name+"-")
	if err != nil {
		return "", fmt.Errorf("testbed: %s: %w", name, err)
	}
	if account == nil {
		return folder, nil
	}
	if err := os.Chown(folder, int(account.Uid), int(account.Gid)); err != nil {
		os.RemoveAll(folder)
		return "", fmt.Errorf("testbed: %s: %w", name, err)
	}
	return folder, nil
}
