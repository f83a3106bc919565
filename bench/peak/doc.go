// Package peak measures the memory of the commands that benchmarks run.
package peak
