//go:build real

package main_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

const installTimeout = 8 * time.Minute

// site is a folder of real pages that are served as one host.
type site struct {
	name   string // of the documentation
	host   string // a loopback address
	folder string
	robots string // content of its robots.txt; empty: it has none
	gzip   bool   // served compressed to those who accept it
}

// install makes nginx, wget and the documentation be there, and returns the sites.
func install(t *testing.T) []site {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin") // nginx lies there, and users do not look there
	postgres := newestInstalled("/usr/share/doc/postgresql-doc-*/html/index.html")
	var missing []string
	for _, need := range []struct {
		there bool
		name  string
	}{
		{has("nginx"), "nginx"},
		{has("wget"), "wget"},
		{isFile("/usr/share/doc/python3-doc/html/index.html"), "python3-doc"},
		{postgres != "", "postgresql-doc"},
	} {
		if !need.there {
			missing = append(missing, need.name)
		}
	}
	if len(missing) > 0 {
		aptInstall(t, missing)
		postgres = newestInstalled("/usr/share/doc/postgresql-doc-*/html/index.html")
	}
	must.True(t, postgres != "",
		"postgresql-doc is installed, but there is no /usr/share/doc/postgresql-doc-*/html/index.html")
	return []site{
		{name: "python", host: "127.0.0.2", folder: folderOf(t, "/usr/share/doc/python3-doc/html/index.html"),
			robots: "User-agent: *\nDisallow: /whatsnew/\n"},
		{name: "postgresql", host: "127.0.0.3", folder: folderOf(t, postgres), gzip: true},
	}
}

// aptInstall installs Debian packages, as root or by sudo without a password.
func aptInstall(t *testing.T, packages []string) {
	t.Helper()
	if !has("apt-get") {
		t.Fatalf("missing: %s. This test needs them, and there is no apt-get to install them with (Debian or Ubuntu "+
			"has it)", strings.Join(packages, ", "))
	}
	var asRoot []string
	if os.Geteuid() != 0 {
		if _, err := command(t, 10*time.Second, "sudo", "-n", "true"); err != nil {
			t.Fatalf("missing: %s. Only root may install them: run this test as root, let sudo work without a "+
				"password, or run\n  sudo apt-get install --no-install-recommends %s",
				strings.Join(packages, ", "), strings.Join(packages, " "))
		}
		asRoot = []string{"sudo", "-n"}
	}
	run := func(arguments ...string) {
		t.Log(strings.Join(arguments, " "))
		arguments = slices.Concat(asRoot, []string{"env", "DEBIAN_FRONTEND=noninteractive"}, arguments)
		output, err := command(t, installTimeout, arguments[0], arguments[1:]...)
		must.True(t, err == nil, "%v\n%s", err, output)
	}
	run("apt-get", "update")
	for i, name := range packages {
		if name == "postgresql-doc" {
			packages[i] = newestPostgres(t)
		}
	}
	run(slices.Concat([]string{"apt-get", "install", "-y", "--no-install-recommends"}, packages)...)
}

// newestPostgres is the newest PostgreSQL documentation that the distribution has.
func newestPostgres(t *testing.T) string {
	t.Helper()
	output, err := command(t, time.Minute, "apt-cache", "search", "--names-only", "^postgresql-doc-[0-9]+$")
	must.True(t, err == nil, "%v\n%s", err, output)
	newest := newestOf(strings.FieldsFunc(output, func(r rune) bool { return r == '\n' || r == ' ' }),
		"postgresql-doc-")
	must.True(t, newest != "", "apt-cache knows no package postgresql-doc-N")
	return newest
}

// newestInstalled is the path that matches the pattern and has the highest number in it; empty if
// none matches.
func newestInstalled(pattern string) string {
	paths, _ := filepath.Glob(pattern) // the pattern is a constant
	before, _, _ := strings.Cut(pattern, "*")
	return newestOf(paths, before)
}

// newestOf is the name with the highest number behind prefix; empty if none has one.
func newestOf(names []string, prefix string) string {
	number := func(name string) int {
		rest, found := strings.CutPrefix(name, prefix)
		digits, _, _ := strings.Cut(rest, "/")
		n, err := strconv.Atoi(digits)
		if !found || err != nil {
			return 0
		}
		return n
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return number(name) == 0 })
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// folderOf is where a file lies, symbolic links resolved.
func folderOf(t *testing.T, file string) string {
	t.Helper()
	path := must.Get(filepath.EvalSymlinks(file))(t)
	return filepath.Dir(path)
}
