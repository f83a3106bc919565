// Package loopback shows pages in a browser on this machine, for editors that
// draw none themselves. It serves on 127.0.0.1 alone, on a port that the system
// chooses, and takes every request for hostile until it shows otherwise:
//
//   - A page has an address that cannot be guessed. The first request for it
//     gets the page and a secret cookie; every later one must bring the cookie,
//     so that an address that is seen (in a history, in a list of processes) is
//     of no use once the page is open.
//   - The Host header must be the address itself, so that a name that an attacker
//     points at 127.0.0.1 reaches nothing.
//   - No other origin may read or post: there are no CORS headers, posts must be
//     JSON from the page's own origin, and the cookie is SameSite=Strict.
//   - The page may load nothing, run no script but its own, and be framed by
//     no other page: a Content-Security-Policy with a nonce forbids it.
//   - Bodies, headers, connections and open streams are limited.
package loopback

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// The limits.
const (
	maxBody    = 4 << 10  // of a post
	maxHeader  = 16 << 10 // of all headers of a request
	maxConns   = 64       // at one time, of all pages
	maxStreams = 4        // of one page: a browser may reload faster than it hangs up
	headerTime = 5 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = time.Minute
)

// Page is what is shown. Its functions are called from several goroutines.
type Page struct {
	// HTML is the whole page, self-contained; nonce marks the script and style
	// elements that may take effect.
	HTML func(ctx context.Context, nonce string) ([]byte, error)
	// Post takes what the page posts under a name, with a body of JSON. Its error
	// is shown to the page alone.
	Post func(ctx context.Context, name string, body []byte) error
}

// Server serves pages. The zero value is ready; it listens from the first page on.
type Server struct {
	mu     sync.Mutex
	pages  map[string]*Handle // by the token in their address
	origin string             // "http://127.0.0.1:port"
	host   string             // "127.0.0.1:port"
	http   *http.Server
	closed bool
}

// ErrClosed is that a server was closed.
var ErrClosed = errors.New("the page server is closed")

// Handle is a page that is being served.
type Handle struct {
	URL string

	s     *Server
	token string
	page  Page

	mu      sync.Mutex
	secret  string // of the cookie; "" until the page was fetched
	streams map[*stream]bool
	done    chan struct{}
}

// stream is one browser that listens. Of each kind of message only the newest
// waits for it, so that one that does not read makes nothing pile up.
type stream struct {
	wake    chan struct{}
	waiting map[string][]byte // by kind; the page's lock guards it
}

// Add serves a page until it is closed. Its address is good for one browser.
func (s *Server) Add(p Page) (*Handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.listen(); err != nil {
		return nil, err
	}
	h := &Handle{s: s, token: random(), page: p, streams: map[*stream]bool{}, done: make(chan struct{})}
	h.URL = s.origin + "/" + h.token + "/"
	s.pages[h.token] = h
	return h, nil
}

// listen begins to serve; the lock is held.
func (s *Server) listen() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.http != nil:
		return nil
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.host = l.Addr().String()
	s.origin = "http://" + s.host
	s.pages = map[string]*Handle{}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       2 * headerTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
	}
	go func() { _ = s.http.Serve(limit(l, maxConns)) }()
	return nil
}

// Close ends all pages and frees the port.
func (s *Server) Close() {
	s.mu.Lock()
	pages, server := s.pages, s.http
	s.closed, s.pages = true, nil
	s.mu.Unlock()
	for _, h := range pages {
		h.Close()
	}
	if server != nil {
		_ = server.Close()
	}
}

// Close ends a page: its streams end, and its address is gone.
func (h *Handle) Close() {
	h.s.mu.Lock()
	delete(h.s.pages, h.token)
	h.s.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.done:
	default:
		close(h.done)
	}
}

// Send sends the page, if it is open, a message of JSON. One of the same kind
// that was not read yet is dropped for it.
func (h *Handle) Send(kind string, message []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.streams {
		c.waiting[kind] = message
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// take is what waits for a stream.
func (h *Handle) take(c *stream) map[string][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := c.waiting
	c.waiting = map[string][]byte{}
	return all
}

// Open reports whether a browser has the page open.
func (h *Handle) Open() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams) > 0
}

// random is 256 bits that cannot be guessed, as text for an address or a cookie.
func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// limit refuses connections beyond so many at one time: it accepts and closes
// them, so that the browser gets an answer.
func limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, room: make(chan struct{}, most)}
}

type limited struct {
	net.Listener
	room chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.room <- struct{}{}:
			return &limitedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
		default:
			_ = c.Close()
		}
	}
}

type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
