package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// resultsFolder is where results go that the README shows, from the repository's root.
const resultsFolder = "deploy/bench/results"

// save writes one file for each suffix to folder, which it makes.
func save(folder, name string, write map[string]func(io.Writer) error) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var failed []error
	for suffix, render := range write {
		failed = append(failed, saveFile(filepath.Join(folder, name+suffix), render))
	}
	return errors.Join(failed...)
}

func saveFile(path string, render func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(render(file), file.Close())
}
