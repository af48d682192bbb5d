package cluster

import (
	"slices"
	"strings"
	"time"
)

// Handover is what a granter leaves to the next one when its shard is released: the slots that it has
// granted. Its times count from the instant before the release is written, and the next granter counts
// them from the instant at which it has seen the release, which is later. So each part of a time is
// counted by one clock, and the sum is as exact as if one clock had counted it.
type Handover struct {
	// Ready is the time until grants have ended that the granter did not know of; negative: since then.
	Ready  time.Duration
	Limits []HandoverLimit // in the order of their keys
}

// HandoverLimit is a shared limit with slots that are granted, or with a delay that is not over.
type HandoverLimit struct {
	Key     string
	Limit   Limit
	LastEnd time.Duration // the last request may have ended then; negative: before the release
	Users   []HandoverUser
}

// HandoverUser is a node that has slots.
type HandoverUser struct {
	User   Member
	Number uint64        // of its newest request
	Slots  int           // that it may use
	Left   time.Duration // for which they count
}

// The bounds of a hand-over. A granter with more leaves nothing, so the next one waits for a TTL. They
// are as much as a message of the log easily holds.
const (
	maxHandover = 256 << 10 // bytes, about
	headOfPart  = 48        // bytes of a limit or a user besides its name, at most
)

// handover returns what has been granted, or nil if that is too much.
func (g *granter) handover(now Instant) *Handover {
	h := &Handover{Ready: fromNow(g.ready, now)}
	size := 0
	for key, l := range g.limits {
		l.expire(now, g)
		part := HandoverLimit{Key: key, Limit: l.limit, LastEnd: fromNow(l.lastEnd, now)}
		for _, u := range l.users {
			if u.slots > 0 {
				part.Users = append(part.Users, HandoverUser{u.Member, u.number, u.slots, u.until.Sub(now)})
				size += headOfPart + len(u.Node)
			}
		}
		if len(part.Users) == 0 && now >= l.notBefore(g.o) {
			continue
		}
		if size += headOfPart + len(key); size > maxHandover {
			return nil
		}
		h.Limits = append(h.Limits, part)
	}
	slices.SortFunc(h.Limits, func(a, b HandoverLimit) int { return strings.Compare(a.Key, b.Key) })
	return h
}

// fromNow returns the time from now to an instant. What is longer ago than any crawl is that long ago.
func fromNow(at, now Instant) time.Duration {
	if at < -Instant(never)/2 {
		return -never / 2
	}
	return at.Sub(now)
}

// granter returns the next granter, if the release was seen at an instant.
func (h *Handover) granter(seen Instant, o *Options, isOver func(Member) bool) *granter {
	at := func(d time.Duration) Instant {
		if d <= -never/2 {
			return -Instant(never)
		}
		return seen.Add(min(d, o.TTL))
	}
	g := newGranter(at(h.Ready), o, isOver)
	for _, part := range h.Limits {
		l := &sharedLimit{limit: part.Limit.stricter(part.Limit), lastEnd: at(part.LastEnd)}
		for _, u := range part.Users {
			l.users = append(l.users, &user{Member: u.User, limit: l.limit, number: u.Number, heard: seen,
				slots: min(max(u.Slots, 0), maxSlots), until: at(u.Left)})
		}
		g.limits[part.Key] = l
	}
	return g
}
