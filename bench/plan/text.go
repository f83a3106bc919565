package main

import (
	"fmt"

	"dmir/bench/models"
)

// text prints a training step of Llama 3.1 70B (arXiv 2407.21783) with so many sequences of 8,192 tokens.
func text(batch int) error {
	step, err := models.Llama(models.Config{
		Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, FF: 28672, Vocabulary: 128256, Sequence: 8192, Batch: batch,
	})
	if err == nil {
		fmt.Print(step)
	}
	return err
}
