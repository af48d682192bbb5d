//go:build !core

package identity

import (
	"fmt"
	"regexp"
	"strings"
)

// Targets returns what Emit writes for.
func Targets() []string { return []string{"anubis", "cloudflare", "nginx", "robots"} }

// Emit returns what the operator of a site pastes into the configuration of a wall, so that it knows this crawler;
// empty: the target is unknown.
func (p *Profile) Emit(target string) string {
	switch target {
	case "anubis":
		return p.anubis()
	case "cloudflare":
		return p.cloudflare()
	case "nginx":
		return p.nginx()
	case "robots":
		return fmt.Sprintf("# %s%s\nUser-agent: %s\nCrawl-delay: 10\nDisallow:\n", p.URL, PathPage, p.Product)
	}
	return ""
}

// ranges returns the addresses, each in a form.
func (p *Profile) ranges(form, between string) string {
	var all []string
	for _, a := range p.Addresses {
		all = append(all, fmt.Sprintf(form, a))
	}
	return strings.Join(all, between)
}

// anubis returns an item of bots in a policy file of Anubis: a request needs the name and an address.
func (p *Profile) anubis() string {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(p.UserAgent), "'", "''")
	return fmt.Sprintf("# in bots: of the policy file\n- name: %s\n  user_agent_regex: '^%s$'\n  action: ALLOW\n"+
		"  remote_addresses: [%s]\n", p.Product, pattern, p.ranges("%q", ", "))
}

// nginx returns variables for the http section of nginx.
func (p *Profile) nginx() string {
	name := strings.ReplaceAll(strings.ToLower(p.Product), "-", "_")
	return fmt.Sprintf("# in http: then $is_%[1]s is 1 for requests of %[2]s%[3]s\n"+
		"geo $%[1]s_address {\n    default 0;\n%[4]s}\n"+
		"map \"$%[1]s_address $http_user_agent\" $is_%[1]s {\n    default 0;\n    %[5]q 1;\n}\n",
		name, p.URL, PathPage, p.ranges("    %s 1;\n", ""), "1 "+p.UserAgent)
}

// cloudflare returns an expression for a custom rule.
func (p *Profile) cloudflare() string {
	text := fmt.Sprintf("# Security, WAF, custom rules; action Skip\n(http.user_agent eq %q and ip.src in {%s})\n",
		p.UserAgent, p.ranges("%s", " "))
	if p.Signs {
		text += "# its requests are signed; as a verified bot it is registered by its key directory:\n# " + p.URL +
			PathDirectory + "\n"
	}
	return text
}
