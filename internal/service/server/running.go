package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/service/listen"
)

// AddressFile is the name of the file in the data directory that has the address of the API of a
// running crawl: the address on the first line, then the identity and the id of the process, and
// the fingerprint of its certificate if it has one.
const AddressFile = "server.addr"

// Running is the content of the address file.
type Running struct {
	Address     string // host:port
	Instance    string // changes with every start
	Process     int    // process id
	Certificate string // fingerprint of its certificate; empty: plain HTTP
}

// maxAddressFile bounds how many bytes of the file are read.
const maxAddressFile = 4 << 10

// ErrNotRunning reports that no crawl answers for the data directory.
var ErrNotRunning = errors.New("no running crawl answers for this data directory")

// readAddress reads the address file of a data directory. It returns ErrNotRunning if there is none
// or it is damaged.
func readAddress(dataDir string) (Running, error) {
	path := filepath.Join(dataDir, AddressFile)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Running{}, ErrNotRunning
	}
	if err != nil {
		return Running{}, fmt.Errorf("find the API: %w", err)
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxAddressFile))
	if err != nil {
		return Running{}, fmt.Errorf("find the API: %w", err)
	}
	fields := strings.Fields(string(body))
	if len(fields) < 5 || fields[1] != "instance" || fields[3] != "process" {
		return Running{}, fmt.Errorf("%w: %s is damaged", ErrNotRunning, path)
	}
	process, err := strconv.Atoi(fields[4])
	if err != nil {
		return Running{}, fmt.Errorf("%w: %s is damaged", ErrNotRunning, path)
	}
	running := Running{Address: fields[0], Instance: fields[2], Process: process}
	if len(fields) == 7 && fields[5] == "certificate" {
		running.Certificate = fields[6]
	} else if len(fields) != 5 {
		return Running{}, fmt.Errorf("%w: %s is damaged", ErrNotRunning, path)
	}
	return running, nil
}

// writeAddress writes the file atomically.
func writeAddress(dataDir, address, instance, certificate string) error {
	path := filepath.Join(dataDir, AddressFile)
	text := fmt.Sprintf("%s\ninstance %s\nprocess %d\n", address, instance, os.Getpid())
	if certificate != "" {
		text += "certificate " + certificate + "\n"
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o640); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func removeAddress(dataDir string) error {
	if err := os.Remove(filepath.Join(dataDir, AddressFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ErrToken reports that the crawl does not accept the token.
var ErrToken = errors.New("the running crawl does not accept the token")

const (
	requestTimeout = 5 * time.Second
	maxAnswer      = 1 << 20
	maxAnswerHead  = 64 << 10
)

// FetchStatus fetches the status of the crawl that works on a data directory, and says which crawl
// that is. It returns ErrNotRunning if none answers, and ErrToken if it does not accept the token.
func FetchStatus(ctx context.Context, dataDir, token string) (CrawlStatus, Running, error) {
	var s CrawlStatus
	running, err := readAddress(dataDir)
	if err != nil {
		return s, running, err
	}
	body, err := getWithToken(ctx, running, token, "/api/v1/status")
	if err != nil {
		return s, running, err
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return s, running, fmt.Errorf("the response of %s: %w", running.Address, err)
	}
	return s, running, nil
}

// getWithToken sends one request to a running crawl. It sends the token only after the crawl has
// identified itself.
func getWithToken(ctx context.Context, running Running, token, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	transport := running.transport()
	defer transport.CloseIdleConnections()
	if _, err := get(ctx, transport, running, "", "/healthz"); err != nil {
		return nil, err
	}
	return get(ctx, transport, running, token, path)
}

func get(ctx context.Context, transport *http.Transport, running Running, token, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, running.url(path), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	defer response.Body.Close()
	switch {
	case response.Header.Get(instanceHeader) != running.Instance:
		return nil, fmt.Errorf("%w: something else answers at %s", ErrNotRunning, running.Address)
	case response.StatusCode == http.StatusUnauthorized:
		return nil, ErrToken
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s%s: %s", running.Address, path, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", running.Address, path, err)
	}
	return body, nil
}

// transport connects to the crawl and, if the crawl has a certificate, accepts no other one. It
// uses no proxy: the crawl is near.
func (r Running) transport() *http.Transport {
	t := &http.Transport{MaxResponseHeaderBytes: maxAnswerHead}
	if r.Certificate != "" {
		t.TLSClientConfig = &tls.Config{
			MinVersion: tls.VersionTLS12,
			// the certificate must be the one in the address file; names and issuers do not matter
			InsecureSkipVerify: true,
			VerifyConnection: func(s tls.ConnectionState) error {
				if len(s.PeerCertificates) == 0 || listen.Fingerprint(s.PeerCertificates[0].Raw) != r.Certificate {
					return errors.New("it shows another certificate than the running crawl has")
				}
				return nil
			},
		}
	}
	return t
}

// url returns the URL of a path of the API.
func (r Running) url(path string) string {
	if r.Certificate != "" {
		return "https://" + reachable(r.Address) + path
	}
	return "http://" + reachable(r.Address) + path
}

// reachable returns the address to dial for a listening address: of the unspecified address, the
// loopback one.
func reachable(address string) string {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil || !parsed.Addr().IsUnspecified() {
		return address
	}
	host := "127.0.0.1"
	if parsed.Addr().Is6() {
		host = "::1"
	}
	return net.JoinHostPort(host, fmt.Sprint(parsed.Port()))
}
