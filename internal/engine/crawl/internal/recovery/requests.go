package recovery

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage/starts"
)

// Note is what the start ledger keeps of a lease besides host, address and delay: its kind,
// the line of robots.txt that allowed it, the version of that file (of a request for a robots.txt:
// the origin that it is for, if that is another), and the URL.
func Note(l *frontier.Lease) string {
	why := ""
	switch {
	case l.Kind != frontier.Robots && l.Rules != nil && !l.Rules.Version().IsZero():
		why = l.Rules.Version().String()
	case l.Kind == frontier.Robots && l.Robots.Origin != l.URL.Origin():
		why = l.Robots.Origin.String()
	}
	return l.Kind.String() + "," + strconv.Itoa(l.Verdict.Line) + "," + why + "," + l.URL.String()
}

// parseNote makes a request of a line of the start ledger; false: its note is not from Note.
func parseNote(s starts.Start) (q requestlog.Request, ok bool) {
	parts := strings.SplitN(s.Note, ",", 4)
	if len(parts) != 4 {
		return q, false
	}
	line, lineErr := strconv.Atoi(parts[1])
	u, urlErr := weburl.Parse(parts[3])
	address, addressErr := netip.ParseAddr(s.Address)
	if lineErr != nil || urlErr != nil || addressErr != nil {
		return q, false
	}
	q = requestlog.Request{
		URL: u, Address: address, Sent: true, Start: s.At, Decided: s.At, Delay: s.Delay, Line: line,
	}
	if parts[0] == frontier.Robots.String() {
		q.Kind = requestlog.Robots
		if owner, err := weburl.Parse(parts[2]); err == nil {
			q.For = owner.Origin()
		}
		return q, true
	}
	q.Allowed = true
	if v, err := robots.ParseVersion(parts[2]); err == nil {
		q.Policy = &requestlog.Policy{Version: v}
	}
	return q, true
}
