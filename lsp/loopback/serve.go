package loopback

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// cookie holds a page's secret. Its path keeps the pages apart.
const cookie = "dmir"

// ServeHTTP answers GET /TOKEN/, GET /TOKEN/events and POST /TOKEN/NAME.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if r.Host != s.host {
		http.Error(w, "this address serves only dmir's pages", http.StatusMisdirectedRequest)
		return
	}
	if !s.invited(r) {
		http.Error(w, "the request comes from another site", http.StatusForbidden)
		return
	}
	token, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	h := s.pages[token]
	s.mu.Unlock()
	if !ok || h == nil {
		http.NotFound(w, r)
		return
	}
	switch {
	case name == "" && r.Method == http.MethodGet:
		h.show(w, r)
	case !h.knows(r):
		http.Error(w, "the page is already open elsewhere", http.StatusForbidden)
	case name == "events" && r.Method == http.MethodGet:
		h.events(w, r)
	case name != "" && name != "events" && !strings.Contains(name, "/") && r.Method == http.MethodPost:
		h.post(w, r, name)
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// protect sets the headers that every answer has. The policy of a page itself
// is looser.
func protect(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// knows reports whether a request has the page's secret.
func (h *Handle) knows(r *http.Request) bool {
	h.mu.Lock()
	secret := h.secret
	h.mu.Unlock()
	c, err := r.Cookie(cookie)
	return err == nil && secret != "" && subtle.ConstantTimeCompare([]byte(c.Value), []byte(secret)) == 1
}

// invited reports whether a request comes from one of the server's own pages, or from none, as
// when an editor opens an address.
func (s *Server) invited(r *http.Request) bool {
	if o := r.Header.Get("Origin"); o != "" && o != s.origin {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// admit lets the first request for a page in, and gives it the secret.
func (h *Handle) admit(w http.ResponseWriter, r *http.Request) bool {
	h.mu.Lock()
	first := h.secret == ""
	if first {
		h.secret = random()
	}
	secret := h.secret
	h.mu.Unlock()
	if first {
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: secret, Path: "/" + h.token + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	return first || h.knows(r)
}

func (h *Handle) show(w http.ResponseWriter, r *http.Request) {
	if !h.admit(w, r) {
		http.Error(w, "the page is already open elsewhere; open another from the editor", http.StatusForbidden)
		return
	}
	nonce := random()
	html, err := h.page.HTML(r.Context(), nonce)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'",
		"script-src 'nonce-" + nonce + "'",
		"style-src 'nonce-" + nonce + "'",
		"img-src data:",
		"connect-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; "))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(html)
}

// heartbeat is the time between comments on an idle stream: they keep proxies from
// closing it and detect that a browser is gone.
const heartbeat = 20 * time.Second

// events is the stream of what Send is given, until either side ends it.
func (h *Handle) events(w http.ResponseWriter, r *http.Request) {
	c := &stream{wake: make(chan struct{}, 1), waiting: map[string][]byte{}}
	h.mu.Lock()
	full := len(h.streams) >= maxStreams
	if !full {
		h.streams[c] = true
	}
	h.mu.Unlock()
	if full {
		http.Error(w, "the page has too many open connections", http.StatusTooManyRequests)
		return
	}
	defer func() {
		h.mu.Lock()
		delete(h.streams, c)
		h.mu.Unlock()
	}()
	flow := http.NewResponseController(w)
	write := func(text []byte) bool {
		_ = flow.SetWriteDeadline(time.Now().Add(writeTime))
		_, err := w.Write(text)
		return err == nil && flow.Flush() == nil
	}
	_ = flow.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	ok := write([]byte(": \n\n"))
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for ok {
		select {
		case <-c.wake:
			for _, message := range h.take(c) {
				ok = ok && write(fmt.Appendf(nil, "data: %s\n\n", bytes.ReplaceAll(message, []byte("\n"), nil)))
			}
		case <-beat.C:
			ok = write([]byte(": \n\n"))
		case <-h.done:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (h *Handle) post(w http.ResponseWriter, r *http.Request, name string) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "a message must be JSON", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, "the message is too long", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		return
	}
	if err := h.page.Post(r.Context(), name, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
