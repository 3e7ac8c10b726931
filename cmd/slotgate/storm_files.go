package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// newFile is a file that appears under its name only once it is whole, so that nobody
// takes a part of a report for all of it.
type newFile struct {
	*os.File
	name string
}

// createNew makes a file beside the place where it will be. There must be none yet: a
// report of an earlier storm is not lost by a mistake.
func createNew(name string) (*newFile, error) {
	switch _, err := os.Lstat(name); {
	case err == nil:
		return nil, fmt.Errorf("%s: there is such a file already; remove it or give another name", name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	part := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%08x.part", filepath.Base(name), rand.Uint32()))
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, errors.Unwrap(err))
	}
	return &newFile{file, name}, nil
}

// finish writes the file and gives it its name. Where that fails nothing is left.
func (f *newFile) finish(write func(io.Writer) error) error {
	err := write(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.File.Name(), f.name)
	}
	if err != nil {
		f.discard()
	}
	return err
}

// discard removes what finish has not named. It does nothing after finish.
func (f *newFile) discard() {
	f.Close()
	os.Remove(f.File.Name())
}
