//go:build !unix

package main

import "errors"

type profile struct{}

func (*profile) begin(*client) error { return nil }
func (*profile) end(*client) error   { return nil }

func serveProfiled(string) error {
	return errors.New("profiles need signals, which this system has not")
}
