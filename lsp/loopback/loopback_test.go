package loopback

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// html is a page with a nonce.
func html(_ context.Context, nonce string) ([]byte, error) {
	return []byte(`<!DOCTYPE html><html><head><style nonce="` + nonce + `">p{}</style></head><body><script nonce="` + nonce + `">x</script></body></html>`), nil
}

// serve serves a page and returns it and what was posted to it.
func serve(t *testing.T) (*Server, *Handle, func() []string) {
	t.Helper()
	s := &Server{}
	t.Cleanup(s.Close)
	var mu sync.Mutex
	var posts []string
	h, err := s.Add(Page{
		HTML: html,
		Post: func(_ context.Context, name string, body []byte) error {
			if name != "reveal" {
				return errors.New("no such message")
			}
			mu.Lock()
			defer mu.Unlock()
			posts = append(posts, string(body))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, h, func() []string { mu.Lock(); defer mu.Unlock(); return posts }
}

// patient is longer than any machine under load takes to answer.
const patient = 10 * time.Minute

// browser keeps cookies, as browsers do.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Timeout: patient, Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// ask sends a request; change may spoil it.
func ask(t *testing.T, c *http.Client, method, url, body string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// A browser opens the page, reloads it, receives what is sent and posts what is
// chosen.
func TestPage(t *testing.T) {
	s, h, posts := serve(t)
	if !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/[\w-]{43}/$`).MatchString(h.URL) {
		t.Errorf("address %s", h.URL)
	}
	c := browser(t)
	res, text := ask(t, c, "GET", h.URL, "", nil)
	nonces := regexp.MustCompile(`<(?:script|style) nonce="([\w-]{43})"`).FindAllStringSubmatch(text, -1)
	if res.StatusCode != 200 || len(nonces) != 2 || nonces[0][1] != nonces[1][1] {
		t.Fatalf("%s %s", res.Status, text)
	}
	policy := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'nonce-" + nonces[0][1] + "'", "frame-ancestors 'none'", "connect-src 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %s has no %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("headers %v", res.Header)
	}
	set := res.Header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/" + h.token + "/"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie %s is not %s", set, want)
		}
	}
	if res, again := ask(t, c, "GET", h.URL, "", nil); again == text || res.StatusCode != 200 || res.Header.Get("Set-Cookie") != "" {
		t.Errorf("a reload: %s %v", res.Status, res.Header)
	}
	same := func(r *http.Request) { r.Header.Set("Origin", s.origin); r.Header.Set("Sec-Fetch-Site", "same-origin") }
	if res, text := ask(t, c, "POST", h.URL+"reveal", `{"line":3}`, same); res.StatusCode != 204 || fmt.Sprint(posts()) != `[{"line":3}]` {
		t.Errorf("%s %s %v", res.Status, text, posts())
	}
	if res, text := ask(t, c, "POST", h.URL+"else", `{}`, same); res.StatusCode != 400 || !strings.Contains(text, "no such message") {
		t.Errorf("%s %s", res.Status, text)
	}

	lines := listen(t, c, h)
	h.Send("data", []byte("{\"type\":\"data\",\n\"data\":1}"))
	if got := <-lines; got != `data: {"type":"data","data":1}` {
		t.Errorf("heard %q", got)
	}
	if !h.Open() {
		t.Error("the page is not open")
	}
	h.Close()
	if _, more := <-lines; more {
		t.Error("the stream of a closed page goes on")
	}
	if res, _ := ask(t, c, "GET", h.URL, "", nil); res.StatusCode != 404 {
		t.Errorf("a closed page: %s", res.Status)
	}
}

// listen returns the lines of the page's stream, once it has begun.
func listen(t *testing.T, c *http.Client, h *Handle) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	endless := *c
	endless.Timeout = 0 // it would hold for the whole stream
	res, err := endless.Do(r)
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(res, err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	lines := make(chan string)
	in := bufio.NewScanner(res.Body)
	in.Buffer(nil, 1<<20) // longer than any message of the tests
	if !in.Scan() || in.Text() != ": " {
		t.Fatalf("the stream begins with %q", in.Text())
	}
	go func() {
		defer close(lines)
		for in.Scan() {
			if in.Text() != "" {
				lines <- in.Text()
			}
		}
	}()
	return lines
}

// Requests without the secret get nothing and change nothing.
func TestHostile(t *testing.T) {
	s, h, posts := serve(t)
	other, err := s.Add(Page{HTML: html})
	if err != nil {
		t.Fatal(err)
	}
	c := browser(t)
	if res, _ := ask(t, c, "GET", h.URL, "", func(r *http.Request) { r.Host = "evil.example:80" }); res.StatusCode != http.StatusMisdirectedRequest || len(res.Cookies()) > 0 {
		t.Errorf("another Host before the page was opened: %s", res.Status)
	}
	if res, _ := ask(t, c, "GET", h.URL, "", nil); res.StatusCode != 200 {
		t.Fatalf("the address was spent: %s", res.Status)
	}
	stranger := browser(t)
	for name, a := range map[string]struct {
		c            *http.Client
		method, path string
		body         string
		change       func(*http.Request)
		status       int
	}{
		"address again":           {stranger, "GET", h.URL, "", nil, 403},
		"address without slash":   {c, "GET", strings.TrimSuffix(h.URL, "/"), "", nil, 404},
		"wrong address":           {stranger, "GET", s.origin + "/" + random() + "/", "", nil, 404},
		"no address":              {stranger, "GET", s.origin + "/", "", nil, 404},
		"events without cookie":   {stranger, "GET", h.URL + "events", "", nil, 403},
		"post without cookie":     {stranger, "POST", h.URL + "reveal", "{}", nil, 403},
		"post to unopened page":   {c, "POST", other.URL + "reveal", "{}", nil, 403},
		"cookie of another":       {stranger, "POST", h.URL + "reveal", "{}", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie, Value: random()}) }, 403},
		"empty cookie":            {stranger, "POST", other.URL + "reveal", "{}", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie}) }, 403},
		"host by name":            {c, "POST", h.URL + "reveal", "{}", func(r *http.Request) { r.Host = strings.Replace(s.host, "127.0.0.1", "localhost", 1) }, 421},
		"host of an attacker":     {c, "GET", h.URL, "", func(r *http.Request) { r.Host = "evil.example" }, 421},
		"other port":              {c, "GET", h.URL, "", func(r *http.Request) { r.Host = "127.0.0.1:1" }, 421},
		"from another origin":     {c, "POST", h.URL + "reveal", "{}", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"from no origin":          {c, "POST", h.URL + "reveal", "{}", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"from another site":       {c, "POST", h.URL + "reveal", "{}", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"first request":           {stranger, "GET", other.URL, "", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"from a sibling":          {c, "GET", h.URL + "events", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"a form":                  {c, "POST", h.URL + "reveal", "a=b", func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415},
		"plain text":              {c, "POST", h.URL + "reveal", "{}", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		"no type":                 {c, "POST", h.URL + "reveal", "{}", func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"too long":                {c, "POST", h.URL + "reveal", strings.Repeat("x", maxBody+1), nil, 413},
		"too long, length hidden": {c, "POST", h.URL + "reveal", strings.Repeat("x", 2*maxBody), func(r *http.Request) { r.ContentLength = -1 }, 413},
		"another method":          {c, "PUT", h.URL + "reveal", "{}", nil, 405},
		"preflight":               {c, "OPTIONS", h.URL + "reveal", "", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"get of a message":        {c, "GET", h.URL + "reveal", "", nil, 405},
		"post to the page":        {c, "POST", h.URL, "{}", nil, 405},
		"deeper":                  {c, "POST", h.URL + "reveal/x", "{}", nil, 405},
	} {
		res, text := ask(t, a.c, a.method, a.path, a.body, a.change)
		if res.StatusCode != a.status {
			t.Errorf("%s: %s, want %d: %s", name, res.Status, a.status, text)
		}
		if res.Header.Get("Access-Control-Allow-Origin") != "" || res.Header.Get("Content-Security-Policy") == "" || len(res.Cookies()) > 0 {
			t.Errorf("%s: headers %v", name, res.Header)
		}
		if strings.Contains(text, "<script") {
			t.Errorf("%s: the page got out", name)
		}
	}
	if got := posts(); len(got) != 0 {
		t.Errorf("posted %q", got)
	}
	long, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	long.Header.Set("X", strings.Repeat("x", 1<<20))
	if res, err := c.Do(long); err == nil { // the server may hang up first
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("long headers: %s", res.Status)
		}
	}
	if res, _ := ask(t, c, "GET", h.URL, "", nil); res.StatusCode != 200 {
		t.Errorf("afterwards the page is gone for its own browser: %s", res.Status)
	}
}

// Of many who race for an address one gets the page.
func TestOneTime(t *testing.T) {
	_, h, _ := serve(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for range 16 {
		c := browser(t)
		all.Go(func() {
			res, _ := ask(t, c, "GET", h.URL, "", nil)
			mu.Lock()
			defer mu.Unlock()
			got[res.StatusCode]++
		})
	}
	all.Wait()
	if got[200] != 1 || got[403] != 15 {
		t.Errorf("answers %v", got)
	}
}

// Connections and streams beyond the limits are refused, and the page works on
// once they are gone; a browser that does not read delays no other.
func TestMany(t *testing.T) {
	s, h, _ := serve(t)
	c := browser(t)
	ask(t, c, "GET", h.URL, "", nil)
	var streams []<-chan string
	for range maxStreams {
		streams = append(streams, listen(t, c, h))
	}
	if res, _ := ask(t, c, "GET", h.URL+"events", "", nil); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one stream more: %s", res.Status)
	}
	long := []byte(`"` + strings.Repeat("x", 1<<16) + `"`)
	for i := range 1000 { // without a reader
		h.Send("data", long)
		h.Send("select", fmt.Appendf(nil, "%d", i))
	}
	for _, lines := range streams {
		newest := false
		for line := range lines {
			if newest = line == "data: 999"; newest {
				break
			}
		}
		if !newest {
			t.Error("a stream ended without the newest message")
		}
	}

	var open []net.Conn
	for range 2 * maxConns {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.host)
		if err != nil {
			break
		}
		open = append(open, conn)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	deadline := time.Now().Add(patient)
	for { // the server notices closed connections after a while
		res, err := browser(t).Get(h.URL)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode != 403 {
				t.Errorf("after the crowd: %s", res.Status)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the crowd: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A closed server frees its port, ends its streams and takes no page.
func TestClose(t *testing.T) {
	s, h, _ := serve(t)
	c := browser(t)
	ask(t, c, "GET", h.URL, "", nil)
	lines := listen(t, c, h)
	s.Close()
	if _, more := <-lines; more {
		t.Error("the stream goes on")
	}
	if _, err := s.Add(Page{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a page on a closed server: %v", err)
	}
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.host); err == nil {
		t.Error("the port is still open")
	}
	s.Close()
	h.Close()
}

// A page that cannot be made explains why.
func TestNoPage(t *testing.T) {
	s := &Server{}
	defer s.Close()
	h, err := s.Add(Page{HTML: func(context.Context, string) ([]byte, error) { return nil, errors.New("there is no function @f") }})
	if err != nil {
		t.Fatal(err)
	}
	if res, text := ask(t, browser(t), "GET", h.URL, "", nil); res.StatusCode != 404 || !strings.Contains(text, "no function @f") {
		t.Errorf("%s %s", res.Status, text)
	}
}
