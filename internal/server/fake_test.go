package server

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// fake is a server that answers in place of a crawl.
type fake struct {
	address string
	http    *http.Server
	serving sync.WaitGroup
}

func startFake(h http.Handler) (*fake, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &fake{address: listener.Addr().String(), http: &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}}
	f.serving.Go(func() { _ = f.http.Serve(listener) })
	return f, nil
}

func (f *fake) close() {
	_ = f.http.Close()
	f.serving.Wait()
}
