package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/program"
	"dmir/bench/models"
	"dmir/bench/record"
	"dmir/syntax/source"
)

// A ScaleRow is what it takes to plan a GPT model of the width of GPT-3 (Brown et al., arXiv 2005.14165).
type ScaleRow struct {
	Layers     int     `json:"layers"`
	Parameters int64   `json:"parameters"`
	Devices    int     `json:"devices"`
	Load       float64 `json:"load_s"` // to read and analyse the text
	Plan       float64 `json:"plan_s"`
	Memory     uint64  `json:"memory_bytes"` // taken from the system by the process so far
	Settings   int     `json:"settings"`
	Gap        float64 `json:"gap"`
	Best       string  `json:"best"`
	Time       float64 `json:"time_s"` // of the step, predicted
}

// sizes are layers and devices: depth on one cluster, then one model on larger ones.
var sizes = [][2]int{{12, 1024}, {24, 1024}, {48, 1024}, {96, 1024}, {96, 64}, {96, 256}, {96, 4096}, {96, 16384}}

// scale measures how the time to plan grows with the model and the cluster.
func scale(ctx context.Context, page, file string) error {
	cluster, _ := machine.Lookup("dgx-h100")
	var rows []ScaleRow
	for _, s := range sizes {
		text, err := models.GPT(models.Config{Layers: s[0], Hidden: 12288, Heads: 96, Vocabulary: 51200, Sequence: 2048, Batch: 1536})
		if err != nil {
			return err
		}
		began := time.Now()
		m := program.Load(source.New("gpt.dmir", text), program.Options{}).Modules[0]
		loaded := time.Now()
		r, err := plan.Search(ctx, m, m.Func("train"), plan.Options{Machine: cluster, Devices: s[1]})
		if err != nil {
			return fmt.Errorf("%d layers on %d devices: %w", s[0], s[1], err)
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		best := r.Plans[0]
		rows = append(rows, ScaleRow{
			Layers: s[0], Parameters: r.Model.Parameters, Devices: s[1], Load: loaded.Sub(began).Seconds(), Plan: time.Since(loaded).Seconds(),
			Memory: mem.Sys, Settings: r.Searched, Gap: r.Gap, Best: best.Names[0], Time: best.Time,
		})
		fmt.Printf("%+v\n", rows[len(rows)-1])
	}
	if err := record.JSON(file, rows); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("| layers | parameters | devices | load | plan | memory | settings | gap | best plan | step |\n|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d | %.1fB | %d | %.2f s | %.1f s | %.2f GB | %d | %.1f %% | %s | %.2f s |\n",
			r.Layers, float64(r.Parameters)/1e9, r.Devices, r.Load, r.Plan, float64(r.Memory)/1e9, r.Settings, 100*r.Gap, r.Best, r.Time)
	}
	fmt.Print(b.String())
	return record.Table(page, b.String())
}
