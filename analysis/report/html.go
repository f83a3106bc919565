package report

import (
	"encoding/json"

	"dmir/analysis/report/page"
)

// JSON is d as the pages read it.
func JSON(d Data) ([]byte, error) { return json.Marshal(d) }

// HTML is one page that shows d and needs nothing else.
func HTML(d Data) ([]byte, error) {
	text, err := JSON(d)
	if err != nil {
		return nil, err
	}
	return page.Render(d.Title, text), nil
}
