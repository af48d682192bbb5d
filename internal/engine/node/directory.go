//go:build !core

package node

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/system"
)

// Default is the id of the crawl whose data directory is that of the node.
const Default = "DEFAULT"

// MaxID is the longest id of a crawl, in bytes.
const MaxID = 128

// ErrID says that an id is empty or too long.
var ErrID = fmt.Errorf("the id of a crawl has 1 to %d bytes", MaxID)

// checkID returns ErrID for what is no id. Any bytes may be in one.
func checkID(id string) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("%w, not %d", ErrID, len(id))
	}
	return nil
}

// What the names of directories begin with: of crawls with a plain id, of those with any other id, and
// of those that are being removed.
const (
	plainName   = "c-"
	encodedName = "x-"
	deletedName = "deleted-"
)

// encoding makes a name that all file systems can hold of any bytes: they differ by more than case.
var encoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// isPlain reports whether an id stands in the name of its directory as it is. It is no longer than
// others become when they are encoded.
func isPlain(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '.' && i < len(id)-1:
		default:
			return false
		}
	}
	return true
}

// directoryName returns the name of the directory of a crawl. Two ids never have the same.
func directoryName(id string) string {
	if isPlain(id) {
		return plainName + id
	}
	return encodedName + encoding.EncodeToString([]byte(id))
}

// idOf is the inverse of directoryName; false: no crawl has such a directory.
func idOf(name string) (id string, ok bool) {
	if id, ok = strings.CutPrefix(name, plainName); !ok {
		text, isEncoded := strings.CutPrefix(name, encodedName)
		b, err := encoding.DecodeString(text)
		if !isEncoded || err != nil {
			return "", false
		}
		id = string(b)
	}
	return id, checkID(id) == nil && directoryName(id) == name && id != Default
}

// directory has the directories of the crawls other than DEFAULT. It is immutable; its methods use the
// disk.
type directory struct {
	dataDir string // of the node
	most    int    // crawls
}

func (d *directory) path(id string) string {
	return filepath.Join(d.dataDir, crawl.CrawlsDir, directoryName(id))
}

// has reports whether a crawl exists.
func (d *directory) has(id string) (bool, error) {
	if d.most == 0 {
		return false, nil
	}
	_, err := os.Lstat(d.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ids returns the ids of all crawls, sorted.
func (d *directory) ids() (ids []string, err error) {
	if d.most == 0 {
		return nil, nil
	}
	entries, err := d.entries()
	for _, e := range entries {
		if id, ok := idOf(e.Name()); ok && e.IsDir() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

func (d *directory) entries() ([]os.DirEntry, error) {
	entries, err := os.ReadDir(filepath.Join(d.dataDir, crawl.CrawlsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// isUsed reports whether there ever was a crawl besides DEFAULT.
func (d *directory) isUsed() (bool, error) {
	_, err := os.Stat(filepath.Join(d.dataDir, crawl.CrawlsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// create makes the directory of a crawl, so that it outlasts a loss of power.
func (d *directory) create(id string) error {
	ids, err := d.ids()
	if err != nil {
		return err
	}
	if len(ids) >= d.most {
		return fmt.Errorf("%w: there are %d crawls", ErrTooMany, len(ids))
	}
	parent := filepath.Join(d.dataDir, crawl.CrawlsDir)
	if err := os.Mkdir(parent, 0o750); err == nil {
		err = system.SyncDir(d.dataDir)
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Mkdir(d.path(id), 0o750); err != nil {
		return err
	}
	return system.SyncDir(parent)
}

// openFile is the name of the file in the directory of a crawl that is open, or was closed while fetchers
// had leases or hosts had holds.
const openFile = "open"

// setOpen says, durably, that a crawl is open.
func (d *directory) setOpen(id string) error {
	f, err := os.OpenFile(filepath.Join(d.path(id), openFile), os.O_CREATE|os.O_EXCL, 0o640)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = system.SyncDir(d.path(id))
	}
	return err
}

// setClosed says that a crawl is closed, and that other crawls need nothing of it.
func (d *directory) setClosed(id string) error {
	return os.Remove(filepath.Join(d.path(id), openFile))
}

// wasOpen returns the ids of the crawls that were open at the end of the last process, or whose leases
// and holds the next process keeps.
func (d *directory) wasOpen() (open []string, err error) {
	ids, err := d.ids()
	for _, id := range ids {
		if _, err := os.Lstat(filepath.Join(d.path(id), openFile)); err == nil {
			open = append(open, id)
		}
	}
	return open, err
}

// remove deletes a crawl. Once its directory has another name the crawl is gone, also after a crash; an
// error behind that is one of tidying up, which the next start repeats.
func (d *directory) remove(id string) (gone bool, err error) {
	parent := filepath.Join(d.dataDir, crawl.CrawlsDir)
	renamed := filepath.Join(parent, deletedName+rand.Text())
	if err := os.Rename(d.path(id), renamed); err != nil {
		return false, err
	}
	if err := system.SyncDir(parent); err != nil {
		return false, err
	}
	return true, os.RemoveAll(renamed)
}

// tidyUp removes what deletions have left.
func (d *directory) tidyUp() error {
	entries, err := d.entries()
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), deletedName) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.dataDir, crawl.CrawlsDir, e.Name())))
		}
	}
	return err
}
