package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// AddressFile is the name of the file in the data directory that says where the API of a running crawl listens: the address
// on the first line, then the identity and the id of the process, and the fingerprint of its certificate where it has one.
const AddressFile = "server.addr"

// Running is what the address file says of a crawl.
type Running struct {
	Address     string // host:port
	Instance    string // changes with every start
	Process     int    // its id
	Certificate string // fingerprint of the one that it shows; empty: it speaks plain HTTP
}

// maxAddressFile bounds what is read of the file, in bytes.
const maxAddressFile = 4 << 10

// ErrNotRunning says that no crawl answers for the data directory.
var ErrNotRunning = errors.New("no running crawl answers for this data directory")

// readAddress reads the address file of a data directory; ErrNotRunning where there is none or it makes no sense.
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

// writeAddress writes the file as a whole or not at all.
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
