//go:build !core

// Package command has the commands of amble identity, and what a crawl does to show who it is.
package command

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/modules/identity"
	"github.com/amble-crawler/amble/internal/modules/identity/lookup"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/service/server"
)

// Program is what the commands need of the program that they are in.
type Program struct {
	Version string
	Now     func() time.Time
	// Receipts returns the signed heads of the request log in a directory; nil: there are none.
	Receipts func(dir string) ([]byte, error)
	counts   identity.Counts
	signer   *atomic.Pointer[identity.Signer] // of the crawl of this process
}

// NewProgram returns what the commands need. receipts may return nil: there are none.
func NewProgram(version string, now func() time.Time, receipts func(dir string) ([]byte, error)) Program {
	return Program{Version: version, Now: now, Receipts: receipts, counts: identity.NewCounts(),
		signer: new(atomic.Pointer[identity.Signer])}
}

// Collector has the metrics of signed requests; nil: none is signed.
func (p Program) Collector(c *config.Config) prometheus.Collector {
	if c.Identity.Sign == identity.SignNever {
		return nil
	}
	return p.counts
}

// keyring opens the keys of a crawl.
func (p Program) keyring(c *config.Config) (*identity.Keyring, error) {
	keys, err := identity.OpenKeyring(filepath.Join(c.DataDir, identity.KeysDir), p.Now())
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	return keys, nil
}

// profile returns what the documents say, from the settings.
func (p Program) profile(c *config.Config) (*identity.Profile, error) {
	if c.Identity.URL == "" {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("%s: identity.url is empty; set it to the origin at "+
			"which others find this crawler's page, such as https://bot.example.org", c.Source("identity.url")))
	}
	if why := config.NoContact(c); why != "" && !c.Fetch.AllowPrivate {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("%s: %s", c.Source("fetch.contact"), why))
	}
	addresses, err := identity.ParseAddresses(c.Identity.Addresses)
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("%s: identity.addresses: %w",
			c.Source("identity.addresses"), err))
	}
	return &identity.Profile{
		URL: c.Identity.URL, Product: c.Robots.ProductToken, UserAgent: c.UserAgent(p.Version),
		Contact: c.Fetch.Contact, Operator: c.Identity.Operator, Purpose: c.Identity.Purpose,
		Addresses: addresses, Delay: c.Politeness.Delay, PerHost: c.Politeness.PerHost, Obeys: c.Robots.Obey,
		Signs: c.Identity.Sign != identity.SignNever,
	}, nil
}

// Amend makes the requests of a crawl carry signatures, if the settings say so. sign signs other things than requests;
// nil: there is no key.
func (p Program) Amend(c *config.Config, o *crawl.Options) (
	sign func(now time.Time, content []byte) (key string, signature []byte, err error), err error) {
	keys, err := p.keyring(c)
	if err != nil {
		return nil, err
	}
	_, err = keys.Signing(p.Now())
	if err == nil {
		sign = keys.Sign
	}
	if c.Identity.Sign == identity.SignNever {
		return sign, nil
	}
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("%s: identity.sign is %s, and %w: amble identity new "+
			"makes one", c.Source("identity.sign"), c.Identity.Sign, err))
	}
	s := identity.NewSigner(identity.SignerOptions{
		URL: c.Identity.URL, Sign: c.Identity.Sign, Legacy: c.Identity.LegacyHosts(), Now: p.Now,
		Marks: wall.NewMarks(), Counts: p.counts,
	}, keys)
	p.signer.Store(s)
	o.Fetch.Signer = s
	return sign, nil
}

// closeTime is how long responses of the listener may take at the end.
const closeTime = 2 * time.Second

// Serve serves the public documents while a crawl runs, and logs what others cannot verify. stop ends that, and keeps
// what signed requests changed.
func (p Program) Serve(ctx context.Context, c *config.Config, log *slog.Logger) (stop func(), err error) {
	if c.Identity.URL == "" {
		return func() {}, nil
	}
	profile, err := p.profile(c)
	if err != nil {
		return nil, err
	}
	keys, err := p.keyring(c)
	if err != nil {
		return nil, err
	}
	var server *identity.Server
	if c.Identity.Listen != "" {
		site := identity.NewSite(profile, keys, p.Now)
		site.Receipts = func() ([]byte, error) { return p.Receipts(filepath.Join(c.DataDir, requestlog.DirName)) }
		if site.Lookup, err = p.lookup(c, profile, log); err != nil {
			return nil, err
		}
		if server, err = p.listen(c, site); err != nil {
			return nil, err
		}
		log.Info("the public documents of the identity are served", "address", server.Address(), "url", c.Identity.URL)
	}
	ctx, cancel := context.WithCancel(ctx)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		if c.Fetch.AllowPrivate {
			return // of hosts of one's own, which need no proof
		}
		for _, f := range p.checker(profile, keys).Run(ctx) {
			if !f.OK && ctx.Err() == nil {
				log.Warn("others cannot verify this crawler", "what", f.Subject, "why", f.Text)
			}
		}
	}()
	return func() {
		cancel()
		<-checked
		if server != nil {
			grace, end := context.WithTimeout(context.Background(), closeTime)
			defer end()
			_ = server.Close(grace) // what is left of it ends with the process
		}
		if err := p.keepAnswers(c.DataDir); err != nil {
			log.Warn("cannot keep what signed requests changed", "error", err)
		}
	}, nil
}

// lookup returns what answers the operators of sites; nil: the settings do not want that, or the crawl has no API, by
// which its requests are known.
func (p Program) lookup(c *config.Config, profile *identity.Profile, log *slog.Logger) (http.Handler, error) {
	if c.Identity.LookupDays == 0 || c.Server.Listen == "" {
		return nil, nil
	}
	l, err := lookup.New(lookup.Options{
		Product: profile.Product, Path: identity.PathLookup, Days: c.Identity.LookupDays,
		Dir: filepath.Join(c.DataDir, identity.KeysDir), Names: net.DefaultResolver,
		BehindProxy: c.Identity.BehindProxy, Log: log, Now: p.Now,
		Dial: func(ctx context.Context) (lookup.Crawl, error) {
			client, err := server.Dial(ctx, c.DataDir, c.Server.Token)
			if err != nil {
				return nil, err
			}
			return running{client}, nil
		},
	})
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	return l, nil
}

// listen starts the public listener.
func (p Program) listen(c *config.Config, site http.Handler) (*identity.Server, error) {
	i := c.Identity
	s, err := identity.Start(identity.ServerOptions{
		Listen: i.Listen, TLSCert: i.TLSCert, TLSKey: i.TLSKey, BehindProxy: i.BehindProxy, Now: p.Now,
	}, site)
	if err != nil {
		return nil, console.Exit(console.ExitUsage,
			fmt.Errorf("%s: identity.listen: %w", c.Source("identity.listen"), err))
	}
	return s, nil
}

// checkTime bounds each request of a check.
const checkTime = 10 * time.Second

func (p Program) checker(profile *identity.Profile, keys *identity.Keyring) *identity.Checker {
	local, _ := identity.LocalAddresses() // without them nothing is found missing
	return &identity.Checker{
		Profile: profile, Keys: keys, Names: net.DefaultResolver, Local: local, Now: p.Now(),
		Client: &http.Client{
			Timeout:       checkTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}
