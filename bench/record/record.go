// Package record writes what benchmarks measured to files.
package record

import (
	"encoding/json"
	"os"
)

// JSON writes v to the file at path; nothing where path is empty.
func JSON(path string, v any) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Table writes a table to the file at path; nothing where path is empty.
func Table(path, text string) error {
	if path == "" {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
