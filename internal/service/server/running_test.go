package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestStatusFindsAnyPort(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Options{DataDir: dir, Token: "secret"})
	got, running, err := FetchStatus(context.Background(), dir, "secret")
	assert.True(t, err == nil && got.Hosts == 7 && running.Address == s.Address() && running.Process == os.Getpid(),
		"%+v, %+v, %v", got, running, err)
	if _, _, err := FetchStatus(context.Background(), dir, "guess"); !errors.Is(err, ErrToken) {
		t.Errorf("a wrong token: %v", err)
	}
	if _, _, err := FetchStatus(context.Background(), dir, ""); !errors.Is(err, ErrToken) {
		t.Errorf("no token: %v", err)
	}
}

func TestStatusAfterClose(t *testing.T) {
	dir := t.TempDir()
	s := must.Get(Start(Options{Listen: "127.0.0.1:0", DataDir: dir, Now: time.Now}, example))(t)
	left := must.Get(os.ReadFile(filepath.Join(dir, AddressFile)))(t)
	must.Do(t, s.Close(context.Background()))
	_, _, err := FetchStatus(context.Background(), dir, "")
	assert.True(t, errors.Is(err, ErrNotRunning), "after Close: %v", err)
	files, _ := os.ReadDir(dir)
	assert.True(t, len(files) == 0, "Close leaves %v", files)
	// As after kill -9: the file is there and nobody listens.
	must.Do(t, os.WriteFile(filepath.Join(dir, AddressFile), left, 0o644))
	if _, _, err := FetchStatus(context.Background(), dir, ""); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after a crash: %v", err)
	}
}

// The port of a crawl that crashed may belong to something else by now: another crawl, or a thief
// of tokens.
func TestStatusOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	other := start(t, Options{})
	write := func(address string) {
		must.Do(t, writeAddress(dir, address, strings.Repeat("0", 32), ""))
	}
	write(other.Address())
	_, _, err := FetchStatus(context.Background(), dir, "")
	assert.True(t, errors.Is(err, ErrNotRunning), "another crawl at the address: %v", err)
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, r.Header.Get("Authorization"), "", "the token was given away")
	}))
	defer thief.Close()
	write(thief.Listener.Addr().String())
	if _, _, err := FetchStatus(context.Background(), dir, "secret"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("something else at the address: %v", err)
	}
}

// An answer without end is cut, one that never comes ends with the context.
func TestStatusIsBounded(t *testing.T) {
	dir := t.TempDir()
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(instanceHeader, "me")
		if r.URL.Path == "/healthz" {
			return
		}
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer stranger.Close()
	must.Do(t, writeAddress(dir, stranger.Listener.Addr().String(), "me", ""))
	_, _, err := FetchStatus(context.Background(), dir, "")
	assert.True(t, err != nil, "an endless answer is an answer")
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	must.Do(t, writeAddress(dir, l.Addr().String(), "me", ""))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := FetchStatus(ctx, dir, ""); !errors.Is(err, ErrNotRunning) {
		t.Errorf("nobody answers: %v", err)
	}
}

func TestDamagedAddressFile(t *testing.T) {
	for _, text := range []string{"", "127.0.0.1:1", "a b c d e", "127.0.0.1:1\ninstance x\nprocess many\n",
		"\x00\nbad host:1\ninstance x process 1", strings.Repeat("x", 1<<20)} {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, AddressFile), []byte(text), 0o644))
		_, _, err := FetchStatus(context.Background(), dir, "")
		assert.True(t, errors.Is(err, ErrNotRunning), "%.20q: %v", text, err)
	}
}

func TestReachable(t *testing.T) {
	for listened, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", "[::]:80": "[::1]:80", "0.0.0.0:80": "127.0.0.1:80",
		"192.0.2.1:80": "192.0.2.1:80", "[::1]:9": "[::1]:9",
	} {
		assert.Equal(t, reachable(listened), want, listened)
	}
}
