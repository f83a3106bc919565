package connection

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
)

// The limits of one message. A file of 50 MB arrives escaped in about 60 MB.
const (
	maxBody   = 512 << 20
	keptBody  = 1 << 20  // a larger read buffer is dropped after its message
	believed  = 64 << 20 // up to here a header is believed: memory that nothing is written to costs nothing
	maxHeader = 4 << 10
)

// stream frames messages with Content-Length headers, as jsonrpc2's own header
// stream does, but survives what that one reports as the end of the connection:
// a malformed message is refused with an error response and reading goes on
// with the next one, after a broken header with the next header that is found.
type stream struct {
	in     *bufio.Reader
	out    io.Writer
	refuse func(*jsonrpc2.Error) // answers a message that is no request; does not block
	ended  func()                // reading has stopped
	close  func() error

	body []byte

	mu   sync.Mutex // held while a frame is written
	wbuf []byte

	unread struct { // what waits for mu
		sync.Mutex
		messages, bytes int
		full            bool // it was too much
	}
}

var errUnread = errors.New("the editor does not read its messages")

// wait counts a frame of n bytes that has to wait, or ends the connection where
// too many do.
func (s *stream) wait(n int) error {
	u := &s.unread
	u.Lock()
	full := u.full || u.messages >= MaxUnread || u.messages > 0 && u.bytes+n > maxUnreadBytes
	if !full {
		u.messages++
		u.bytes += n
	}
	u.Unlock()
	if full {
		s.giveUp()
		return errUnread
	}
	return nil
}

// giveUp ends a connection whose editor does not read: nothing more is taken
// from it.
func (s *stream) giveUp() {
	s.unread.Lock()
	before := s.unread.full
	s.unread.full = true
	s.unread.Unlock()
	if !before {
		s.ended()
		_ = s.close()
	}
}

func (s *stream) gaveUp() bool {
	s.unread.Lock()
	defer s.unread.Unlock()
	return s.unread.full
}

func (s *stream) waited(n int) {
	s.unread.Lock()
	defer s.unread.Unlock()
	s.unread.messages--
	s.unread.bytes -= n
}

// ReadFrame is the body of the next well-formed message or batch. It is valid
// until the next call.
func (s *stream) ReadFrame(context.Context) ([]byte, int64, error) {
	if cap(s.body) > keptBody {
		s.body = nil // before the wait for the next message, which may be long
	}
	for {
		if s.gaveUp() {
			return nil, 0, errUnread
		}
		length, err := s.header()
		var bad *jsonrpc2.Error
		switch {
		case errors.As(err, &bad):
			s.refuse(bad)
			continue
		case err != nil:
			s.ended()
			return nil, 0, err
		}
		body, err := s.read(length)
		if err != nil {
			s.ended()
			return nil, 0, err
		}
		if bad := check(body); bad != nil {
			s.refuse(bad)
			continue
		}
		return body, int64(length), nil
	}
}

// read reads a body of the given length. Beyond a limit memory grows with what
// arrives, not with what a header promises.
func (s *stream) read(length int) ([]byte, error) {
	if length <= believed {
		if cap(s.body) < length {
			s.body = make([]byte, length)
		}
		s.body = s.body[:length]
		_, err := io.ReadFull(s.in, s.body)
		return s.body, noEOF(err)
	}
	var b bytes.Buffer
	n, err := io.CopyN(&b, s.in, int64(length))
	if n < int64(length) && err == nil {
		err = io.ErrUnexpectedEOF
	}
	s.body = b.Bytes()
	return s.body, noEOF(err)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// check returns the error of a body, nil for a message or a batch.
func check(body []byte) *jsonrpc2.Error {
	batch := bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("["))
	if !batch {
		if _, err := jsonrpc2.DecodeMessage(body); err == nil {
			return nil
		}
	}
	switch {
	case !json.Valid(body):
		return jsonrpc2.NewError(jsonrpc2.ParseError, "the message is not JSON")
	case batch:
		return nil // its members are answered one by one
	}
	return jsonrpc2.NewError(jsonrpc2.InvalidRequest, "the message is not a request, notification or response of JSON-RPC 2.0")
}

// header reads a header block and returns the body's length. After garbage,
// refused once, it looks for the next header. A *jsonrpc2.Error is about a
// message that was skipped as a whole.
func (s *stream) header() (int, error) {
	length, lost := -1, false
	lose := func() {
		if length = -1; !lost {
			lost = true
			s.refuse(jsonrpc2.NewError(jsonrpc2.ParseError, "invalid message header"))
		}
	}
	for first := true; ; {
		line, err := s.line()
		if err != nil {
			if errors.Is(err, io.EOF) && !first {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		line = strings.TrimRight(line, "\r\n")
		if first && line == "" {
			continue // stray blank lines between messages
		}
		first = false
		// After garbage the next header may stand at the end of a line of it.
		field := lastField(line)
		switch {
		case line == "" && length >= 0:
			return s.accept(length)
		case line == "":
			lose()
		case field >= 0:
			n, err := strconv.ParseUint(strings.TrimSpace(line[field+len(contentLength):]), 10, 40)
			if field > 0 || err != nil {
				lose()
			}
			if err == nil {
				length = int(n)
			}
		case !strings.Contains(line, ":") || strings.HasPrefix(line, "{"):
			lose()
		}
	}
}

const contentLength = "content-length:"

// lastField is where the last Content-Length field of a line begins, -1 where
// it has none.
func lastField(line string) int {
	for i := len(line) - len(contentLength); i >= 0; i-- {
		if strings.EqualFold(line[i:i+len(contentLength)], contentLength) {
			return i
		}
	}
	return -1
}

// accept skips messages of an impossible length.
func (s *stream) accept(length int) (int, error) {
	switch {
	case length == 0:
		return 0, jsonrpc2.NewError(jsonrpc2.InvalidRequest, "an empty message")
	case length > maxBody:
		if _, err := io.CopyN(io.Discard, s.in, int64(length)); err != nil {
			return 0, noEOF(err)
		}
		return 0, jsonrpc2.Errorf(jsonrpc2.InvalidRequest, "a message of %d bytes; the limit is %d", length, maxBody)
	}
	return length, nil
}

// line reads one header line; of a longer one only the last bytes are kept,
// where a header may begin again.
func (s *stream) line() (string, error) {
	var kept []byte
	for {
		part, err := s.in.ReadSlice('\n')
		kept = append(kept, part...)
		if len(kept) > maxHeader {
			kept = append(kept[:0], kept[len(kept)-maxHeader:]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(kept) > 0:
			return "", io.ErrUnexpectedEOF
		default:
			return string(kept), err
		}
	}
}

// Read implements [jsonrpc2.Stream] for callers without frames.
func (s *stream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	body, n, err := s.ReadFrame(ctx)
	if err != nil {
		return nil, 0, err
	}
	m, err := jsonrpc2.DecodeMessage(body)
	return m, n, err
}

// Write sends one message. It does not look at ctx: half a message, or a
// response withheld, would be worse than a late one.
func (s *stream) Write(_ context.Context, m jsonrpc2.Message) (int64, error) {
	return s.write(func(b []byte) []byte { return jsonrpc2.AppendMessage(b, m) })
}

// WriteFrame sends an encoded message or batch.
func (s *stream) WriteFrame(_ context.Context, body []byte) (int64, error) {
	return s.write(func(b []byte) []byte { return append(b, body...) })
}

func (s *stream) write(appendBody func([]byte) []byte) (int64, error) {
	if !s.mu.TryLock() {
		body := appendBody(nil)
		if err := s.wait(len(body)); err != nil {
			return 0, err
		}
		s.mu.Lock()
		s.waited(len(body))
		appendBody = func(b []byte) []byte { return append(b, body...) }
	}
	defer s.mu.Unlock()
	const room = 40
	b := append(s.wbuf[:0], make([]byte, room)...)
	b = appendBody(b)
	head := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(b)-room)
	start := room - len(head)
	copy(b[start:], head)
	n, err := s.out.Write(b[start:])
	if s.wbuf = b; cap(b) > keptBody {
		s.wbuf = nil
	}
	return int64(n), err
}

// Close closes the transport.
func (s *stream) Close() error { return s.close() }
