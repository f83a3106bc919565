// Package record writes what benchmarks measured, and on which machine, to files.
package record

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
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

// Section is the page with a text in place of what stands between the lines begin and end.
func Section(page, begin, end, text string) (string, error) {
	before, rest, found := strings.Cut(page, begin+"\n")
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("there are no lines %s and %s", begin, end)
	}
	return before + begin + "\n" + text + end + after, nil
}

// Insert replaces the section of the page at path.
func Insert(path, begin, end, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := Section(string(old), begin, end, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(page), 0o644)
}
