package console

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

type fruit struct {
	Name string `json:"name"`
	N    int    `json:"n,omitempty"`
}

// printFruit prints a list with the flags of a command line.
func printFruit(t *testing.T, ended error, rest any, list []fruit, args ...string) (out, notes string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := Printer{}
	command := &cobra.Command{Use: "fruit", RunE: func(command *cobra.Command, _ []string) error {
		if err := p.Check(); err != nil {
			return err
		}
		l, err := NewList(&p, command, Table[fruit]{Name: "fruit", Noun: "fruit", Titles: []string{"NAME"},
			Cells: func(f *fruit) []string { return []string{f.Name} }})
		if err != nil {
			return err
		}
		for i := range list {
			if err := l.Row(&list[i]); err != nil {
				return err
			}
		}
		return l.End(ended, rest, "more")
	}}
	p.ListFlags(command)
	command.SetArgs(args)
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.Execute()
	return stdout.String(), stderr.String(), err
}

func TestList(t *testing.T) {
	two := []fruit{{"apple", 1}, {"=fig", 0}}
	rest := struct {
		Matching int `json:"matching"`
	}{7}
	for _, c := range []struct {
		list             []fruit
		rest             any
		args, out, notes string
	}{
		{two, rest, "", "  NAME\n  apple\n  =fig\nmore\n", ""},
		{two, rest, "--json", `{"fruit":[{"name":"apple","n":1}` + "\n" + `,{"name":"=fig"}` + "\n" +
			`],"matching":7}` + "\n", "more\n"},
		{nil, rest, "--json", `{"fruit":[],"matching":7}` + "\n", "more\n"},
		{nil, nil, "--json", `{"fruit":[]}` + "\n", "more\n"},
		{nil, struct{}{}, "--json", `{"fruit":[]}` + "\n", "more\n"},
		{two, rest, "--jsonl", `{"name":"apple","n":1}` + "\n{\"name\":\"=fig\"}\n", "more\n"},
		{two, rest, "--csv", "name,n\napple,1\n'=fig,\n", "more\n"},
		{nil, rest, "--csv", "name,n\n", "more\n"},
	} {
		out, notes, err := printFruit(t, nil, c.rest, c.list, strings.Fields(c.args)...)
		assert.True(t, err == nil && out == c.out && notes == c.notes, "%s: %v\n%q\nwant\n%q\nnotes %q", c.args, err,
			out, c.out, notes)
	}
}

// TestListFile: a file has the form that its name says, gets its name when it is complete, and is gone after an error.
func TestListFile(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"a.csv": "name,n\napple,1\n", "b.jsonl": `{"name":"apple","n":1}` + "\n", "c.CSV": "name,n\napple,1\n",
		"d.json": `{"fruit":[{"name":"apple","n":1}` + "\n]}\n", "e.csv.gz": "name,n\napple,1\n",
	} {
		path := filepath.Join(dir, name)
		out, notes, err := printFruit(t, nil, nil, []fruit{{"apple", 1}}, "-o", path)
		must.True(t, err == nil && out == "" && notes == "more\n"+path+": 1 fruit\n", "%s: %v, %q, %q", name, err, out,
			notes)
		got, err := os.ReadFile(path)
		if err == nil && strings.HasSuffix(name, ".gz") {
			var plain *gzip.Reader
			if plain, err = gzip.NewReader(bytes.NewReader(got)); err == nil {
				got, err = io.ReadAll(plain)
			}
		}
		assert.True(t, err == nil && string(got) == want, "%s: %v, %q, want %q", name, err, got, want)
	}
	lost := errors.New("lost")
	path := filepath.Join(dir, "lost.csv")
	_, _, err := printFruit(t, lost, nil, []fruit{{"apple", 1}}, "-o", path)
	assert.True(t, errors.Is(err, lost), "%v", err)
	left, _ := filepath.Glob(path + "*")
	assert.True(t, left == nil, "left after an error: %v", left)
}

// TestListForm: nothing gets into a file that its name does not say.
func TestListForm(t *testing.T) {
	for _, args := range []string{"-o x.csv --jsonl", "-o x.json --csv", "-o x", "-o x.txt.gz", "--json --csv"} {
		_, _, err := printFruit(t, nil, nil, nil, strings.Fields(args)...)
		assert.True(t, err != nil, "%s is taken", args)
	}
	for name, taken := range map[string]bool{
		"x.xlsx": false, "x.txt.gz": false, "x": true, "x.zst": true, "x.jsonl": true,
	} {
		err := (&Printer{Default: Lines, file: name}).Check()
		assert.Equal(t, err == nil, taken, "with lines unless the name says another form,", name)
	}
}
