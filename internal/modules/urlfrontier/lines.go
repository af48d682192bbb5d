package urlfrontier

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// DefaultCrawl is the crawl of items without a crawl id.
const DefaultCrawl = "DEFAULT"

// Item is what one line says of a URL.
type Item struct {
	URL   weburl.URL
	Crawl string // the crawl id, never empty
	// Known says that the URL was fetched, or that somebody decided when to fetch it. Else it was
	// only discovered.
	Known    bool
	Due      time.Time // of a known URL: when it is fetched, in whole seconds; zero: never again
	Created  time.Time // when it came into the frontier, in whole seconds; zero: unknown
	Metadata storage.Metadata
}

// Errors of lines, besides those of JSON and of URLs.
var (
	errNoItem = errors.New(`has neither "known" nor "discovered"`)
	errNoURL  = errors.New(`has no "url"`)
)

// maxUnix is the last second that the protocol's dates may name here: the end of the year 9999.
const maxUnix = 253_402_300_799

// ParseItem reads a line. Fields that it does not know are ignored, and so is the key of the queue:
// queues are those of hosts here. Metadata may be longer than the store takes.
func ParseItem(line []byte) (Item, error) {
	var m urlfrontierpb.URLItem
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(line, &m); err != nil {
		return Item{}, fmt.Errorf("is not a URL item: %w", err)
	}
	i := Item{Crawl: DefaultCrawl}
	var info *urlfrontierpb.URLInfo
	switch item := m.Item.(type) {
	case *urlfrontierpb.URLItem_Discovered:
		info = item.Discovered.GetInfo()
	case *urlfrontierpb.URLItem_Known:
		info, i.Known = item.Known.GetInfo(), true
		i.Due = fromUnix(item.Known.GetRefetchableFromDate())
	default:
		return Item{}, errNoItem
	}
	if info.GetUrl() == "" {
		return Item{}, errNoURL
	}
	var err error
	if i.URL, err = weburl.Parse(info.GetUrl()); err != nil {
		return Item{}, err
	}
	if info.GetCrawlID() != "" {
		i.Crawl = info.GetCrawlID()
	}
	i.Created = fromUnix(m.GetCreationDate())
	if len(info.GetMetadata()) > 0 {
		i.Metadata = make(storage.Metadata, len(info.GetMetadata()))
		for key, list := range info.GetMetadata() {
			i.Metadata[key] = list.GetValues()
		}
	}
	return i, nil
}

func fromUnix(s uint64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(min(s, maxUnix)), 0)
}

// AppendItem appends the line that ParseItem reads, with its end. The key of the queue is the host.
func AppendItem(b []byte, i *Item) ([]byte, error) {
	info := &urlfrontierpb.URLInfo{Url: i.URL.String(), Key: i.URL.Host(), CrawlID: i.Crawl}
	if len(i.Metadata) > 0 {
		info.Metadata = make(map[string]*urlfrontierpb.StringList, len(i.Metadata))
		for key, values := range i.Metadata {
			info.Metadata[key] = &urlfrontierpb.StringList{Values: values}
		}
	}
	m := &urlfrontierpb.URLItem{CreationDate: toUnix(i.Created)}
	if i.Known {
		known := &urlfrontierpb.KnownURLItem{Info: info, RefetchableFromDate: toUnix(i.Due)}
		m.Item = &urlfrontierpb.URLItem_Known{Known: known}
	} else {
		m.Item = &urlfrontierpb.URLItem_Discovered{Discovered: &urlfrontierpb.DiscoveredURLItem{Info: info}}
	}
	b, err := protojson.MarshalOptions{}.MarshalAppend(b, m)
	if err != nil {
		return b, fmt.Errorf("write %s as a URL item: %w", i.URL, err)
	}
	return append(b, '\n'), nil
}

func toUnix(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.Unix(), 1))
}
