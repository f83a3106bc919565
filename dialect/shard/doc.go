// Package shard is how values are divided over the devices of a mesh: the layouts that
// follow for all values of a function from those that its text states, and the
// collectives that lead from one layout to another.
package shard
