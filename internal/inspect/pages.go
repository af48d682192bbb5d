package inspect

import "context"

// HostPage is a part of a list of hosts.
type HostPage struct {
	Hosts    []Host `json:"hosts"`
	Matching int    `json:"matching"`       // hosts that the question is for, on all pages
	Next     string `json:"next,omitempty"` // HostQuery.After of the next page; empty: there is none
}

// HostPage is [View.Hosts] with the hosts in memory.
func (v *View) HostPage(ctx context.Context, q HostQuery) (HostPage, error) {
	page := HostPage{Hosts: []Host{}}
	matching, err := v.Hosts(ctx, q, func(h *Host) error {
		page.Hosts = append(page.Hosts, *h)
		return nil
	})
	page.Matching = matching
	return page, err
}

// URLPage is a part of a list of URLs.
type URLPage struct {
	URLs []URL  `json:"urls"`
	Next string `json:"next,omitempty"` // URLQuery.From of the next page; empty: there is none
}

// URLPage is [View.URLs] with the URLs in memory.
func (v *View) URLPage(ctx context.Context, q URLQuery) (URLPage, error) {
	page := URLPage{URLs: []URL{}}
	next, err := v.URLs(ctx, q, func(u *URL) error {
		page.URLs = append(page.URLs, *u)
		return nil
	})
	if next != nil {
		page.Next = next.String()
	}
	return page, err
}
