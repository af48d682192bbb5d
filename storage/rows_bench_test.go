package storage

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/weburl"
)

// rowsStore is what ours is measured beside: bbolt as it is, with a row for each URL and another for each that waits. It does
// less than ours: it keeps nothing of a host, no counters and no times at which a URL is due.
type rowsStore struct {
	db   *bolt.DB
	path string
}

var (
	rowsURL   = []byte("url")   // text of a URL: what is known of it, and its outcome
	rowsQueue = []byte("queue") // host, 0, number in the order of discovery: text of a URL that waits
)

const rowsFile = "rows.db"

func openRows(b *testing.B, dir string) *rowsStore {
	path := filepath.Join(dir, rowsFile)
	db, err := bolt.Open(path, 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, InitialMmapSize: defaultMapBytes})
	if err != nil {
		b.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{rowsURL, rowsQueue} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return &rowsStore{db: db, path: path}
}

func (r *rowsStore) close(b *testing.B) {
	if err := r.db.Close(); err != nil {
		b.Fatal(err)
	}
}

// knownSize is how much is kept of a URL that waits.
const knownSize = 16

// appendKnown appends what is kept of a queued URL: state, depth, priority, who links to it and when that was seen. The
// outcome follows it.
func appendKnown(b []byte) []byte {
	b = append(b, byte(Queued), 0, 3, 0)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, 77)
	return binary.BigEndian.AppendUint32(b, seconds(someTime))
}

// appendFetched appends the value of a URL after its outcome, in as many bytes as ours.
func appendFetched(b, known []byte, o *Outcome) []byte {
	b = appendOutcome(append(b, known[:knownSize]...), o)
	b[0] = byte(o.State)
	return b
}

func queueKey(host string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(host), 0), number)
}

// rowsNext is a URL taken from the queue.
type rowsNext struct {
	key     []byte // in the queue
	url     []byte
	outcome Outcome
}

// next reads the first URL of a host.
func (r *rowsStore) next(host string) (n rowsNext, ok bool) {
	_ = r.db.View(func(tx *bolt.Tx) error {
		prefix := append([]byte(host), 0)
		key, url := tx.Bucket(rowsQueue).Cursor().Seek(prefix)
		n, ok = rowsNext{key: slices.Clone(key), url: slices.Clone(url)}, bytes.HasPrefix(key, prefix)
		return nil
	})
	return n, ok
}

// commit writes outcomes and URLs that were found, new and known ones, durable and in one transaction. It puts found in the
// order of the rows, as that is faster.
func (r *rowsStore) commit(done []rowsNext, found []weburl.URL) error {
	return r.db.Update(func(tx *bolt.Tx) error {
		urls, queue := tx.Bucket(rowsURL), tx.Bucket(rowsQueue)
		for i := range done {
			d := &done[i]
			if err := urls.Put(d.url, appendFetched(nil, urls.Get(d.url), &d.outcome)); err != nil {
				return err
			}
			if err := queue.Delete(d.key); err != nil {
				return err
			}
		}
		slices.SortFunc(found, func(a, b weburl.URL) int { return strings.Compare(a.String(), b.String()) })
		for _, u := range found {
			if err := addRow(urls, queue, u); err != nil {
				return err
			}
		}
		return nil
	})
}

func addRow(urls, queue *bolt.Bucket, u weburl.URL) error {
	text := []byte(u.String())
	if urls.Get(text) != nil {
		return nil
	}
	if err := urls.Put(text, appendKnown(nil)); err != nil {
		return err
	}
	number, err := queue.NextSequence()
	if err != nil {
		return err
	}
	return queue.Put(queueKey(u.Origin().Host, number), text)
}

// hosts counts the hosts that have work: what a process has to know before it can ask the first.
func (r *rowsStore) hosts() (n int) {
	_ = r.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(rowsQueue).Cursor()
		for key, _ := c.First(); key != nil; n++ {
			end := bytes.IndexByte(key, 0)
			key, _ = c.Seek(append(slices.Clone(key[:end]), 1))
		}
		return nil
	})
	return n
}

// states counts the URLs of each state, as nothing else has counted them.
func (r *rowsStore) states() (counts [numStates]int) {
	_ = r.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(rowsURL).Cursor()
		for key, value := c.First(); key != nil; key, value = c.Next() {
			counts[value[0]]++
		}
		return nil
	})
	return counts
}
