//go:build !core

// Package arguments reads arguments that commands of several modules have.
package arguments

import (
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Names returns the names of hosts that a command is about: a host or a domain, by the value of its flag --scope.
func Names(flag, text string) (names weburl.Names, err error) {
	scope := optout.Scope(flag)
	if scope == "" {
		scope = optout.ScopeDomain
	}
	if scope != optout.ScopeHost && scope != optout.ScopeDomain {
		return names, console.Usagef("--scope is %q, should be host or domain", flag)
	}
	if strings.Contains(text, "*") {
		return names, console.Usagef("%q is a pattern: name the domain itself, the names below it are erased too", text)
	}
	e, err := optout.New(optout.Entry{Scope: scope, Value: text})
	if err != nil && flag == "" { // an address has no names below it
		scope = optout.ScopeHost
		e, err = optout.New(optout.Entry{Scope: scope, Value: text})
	}
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), optout.ErrEntry.Error()+" of ")
		return names, console.Usagef("%s", why)
	}
	if scope == optout.ScopeDomain && isRegistry(e.Value) {
		return names,
			console.Usagef("everybody registers names below %s: name one of them, or set --scope host", e.Value)
	}
	return weburl.Names{Name: e.Value, Below: scope == optout.ScopeDomain}, nil
}

// isRegistry reports whether names below a host are registered by everybody, as those below com or
// co.uk are, by the part of the Public Suffix List that registries have made.
func isRegistry(host string) bool {
	suffix, registry := publicsuffix.PublicSuffix(host)
	return registry && suffix == host
}
