package weburl

import (
	"fmt"
	"strings"
)

// cutAuthority splits the text after the slashes of a URL into the authority and the rest.
func cutAuthority(s string) (authority, target string) {
	if end := strings.IndexAny(s, `/\?`); end >= 0 {
		return s[:end], s[end:]
	}
	return s, ""
}

// parseAuthority returns the origin of an authority. It drops user name and password.
func parseAuthority(scheme, authority string) (Origin, error) {
	host, port := cutPort(authority[strings.LastIndexByte(authority, '@')+1:])
	if host == "" {
		return Origin{}, ErrNoHost
	}
	number, err := parsePort(scheme, port)
	if err != nil {
		return Origin{}, err
	}
	host, err = canonicalHost(host)
	return Origin{Scheme: scheme, Host: host, Port: number}, err
}

// cutPort cuts at the first colon outside of brackets.
func cutPort(s string) (host, port string) {
	inBrackets := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[':
			inBrackets = true
		case ']':
			inBrackets = false
		case ':':
			if !inBrackets {
				return s[:i], s[i+1:]
			}
		}
	}
	return s, ""
}

// parsePort returns the port of a URL; "" is the scheme's default.
func parsePort(scheme, s string) (uint16, error) {
	port := 0
	for i := 0; i < len(s); i++ {
		if port = port*10 + int(s[i]-'0'); !isDigit(s[i]) || port > 65535 {
			return 0, fmt.Errorf("%w: the port is not a number from 1 to 65535", ErrSyntax)
		}
	}
	switch {
	case s == "":
		return defaultPort(scheme), nil
	case port == 0:
		return 0, fmt.Errorf("%w: port 0 cannot be used", ErrSyntax)
	}
	return uint16(port), nil
}
