package deploy

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/gate/decision"
	"github.com/slotgate/slotgate/gate/truth"
	"github.com/slotgate/slotgate/gate/truth/source"
	"github.com/slotgate/slotgate/rules"
)

const accepted = "# accepted warning: "

// recipes are the files and what they configure, loaded as `slotgate check` loads them,
// with an empty environment: what they take from it has a default.
func recipes(t *testing.T) map[string]*rules.Config {
	t.Helper()
	files, _ := filepath.Glob("recipes/*.yaml")
	if len(files) != 5 {
		t.Fatalf("%d recipes, want 5", len(files))
	}
	configs := make(map[string]*rules.Config, len(files))
	for _, file := range files {
		text := read(t, file)
		none := func(string) (string, bool) { return "", false }
		config, faults := rules.Load(file, []byte(text), rules.LoadOptions{Env: none, DSN: source.CheckDSN})
		warnings := acceptedWarnings(text)
		for _, fault := range faults {
			i := slices.IndexFunc(warnings, func(begin string) bool { return strings.Contains(fault.String(), " warning: "+begin) })
			if i < 0 {
				t.Errorf("%s", fault)
				continue
			}
			warnings = slices.Delete(warnings, i, i+1)
		}
		for _, warning := range warnings {
			t.Errorf("%s accepts a warning that check does not give: %s", file, warning)
		}
		if config == nil {
			t.FailNow()
		}
		configs[filepath.Base(file)] = config
	}
	return configs
}

// acceptedWarnings are how the warnings begin that a recipe says it has.
func acceptedWarnings(text string) (warnings []string) {
	for line := range strings.Lines(text) {
		if warning, ok := strings.CutPrefix(line, accepted); ok {
			warnings = append(warnings, strings.TrimSpace(warning))
		}
	}
	return warnings
}

// Each recipe can be used as it stands, and the README shows what explain makes of it.
func TestRecipes(t *testing.T) {
	about := read(t, "recipes/README.md")
	for file, config := range recipes(t) {
		if !strings.Contains(about, "\n## "+file+"\n") || !strings.Contains(about, "\n$ slotgate explain -c "+file+" ") {
			t.Errorf("recipes/README.md has no part about %s with what explain says", file)
		}
		for _, rule := range config.Rules {
			if rule.Mode != "enforce" {
				t.Errorf("%s: rule %s is in mode %s", file, rule.Name, rule.Mode)
			}
		}
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	// ownName is a word that only a configuration, an answer or a metric has.
	ownName = regexp.MustCompile(`\b[a-z]+(?:[_.-][a-z]+)+`)
)

// guides are written for people; what they name and link to is looked up.
var guides = []string{"FIRST-HOUR.md", "recipes/README.md", "MIGRATION.md", "SIZING.md", "FAQ.md"}

// readmes are read first.
var readmes = []string{"../README.md", "README.zh-CN.md", "README.md"}

// Names of other programs, commands and files that the guides speak of.
var foreign = []string{
	"json-lessons.yaml", "php-form.yaml", "envelope.yaml", "tickets.yaml", "idempotency-only.yaml", "slotgate.yaml", "areas.txt",
	"limit_req", "limit_conn", "limit_req_status", "limit_req_zone", "limit_req_dry_run", "binary_remote_addr", "maxmemory-policy", "stream-node-max-bytes",
	"expect-no", "retries-same-key",
}

// Every name that a guide puts in code, if it looks like one of Slotgate's, is one: of the
// configuration, an answer, a report, a metric or a recipe.
func TestGuidesNameWhatThereIs(t *testing.T) {
	known := metricNames(t)
	var schema any
	if err := json.Unmarshal(rules.JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	noteWords(schema, known)
	for _, d := range decision.Own() {
		known[string(d)] = true
		known[strings.ReplaceAll(string(d), "-", "_")] = true
	}
	for _, damage := range truth.Damages() {
		known[string(damage)] = true
	}
	for file, config := range recipes(t) {
		for _, m := range ownName.FindAllString(read(t, filepath.Join("recipes", file)), -1) {
			known[m] = true // paths, fields and tables that a recipe has made up
		}
		for _, rule := range config.Rules {
			known[rule.Name] = true
		}
	}
	for _, m := range regexp.MustCompile(`json:"([a-z_]+)"`).FindAllStringSubmatch(read(t, "../gate/admin/shadow.go"), -1) {
		known[m[1]] = true
	}
	for _, word := range foreign {
		known[word] = true
	}
	for _, file := range guides {
		for _, m := range codeSpan.FindAllStringSubmatch(read(t, file), -1) {
			for _, word := range ownName.FindAllString(m[1], -1) {
				if !known[word] && slices.ContainsFunc(strings.Split(word, "."), func(part string) bool { return !known[part] }) {
					t.Errorf("%s: %s in `%s` is nothing that Slotgate has", file, word, m[1])
				}
			}
		}
	}
}

// noteWords adds the names of properties and the words of enums of a JSON Schema.
func noteWords(schema any, words map[string]bool) {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			noteWords(item, words)
		}
	case map[string]any:
		for key, value := range s {
			words[key] = true
			if list, ok := value.([]any); ok && key == "enum" {
				for _, item := range list {
					if word, ok := item.(string); ok {
						words[word] = true
					}
				}
			}
			noteWords(value, words)
		}
	}
}

// Links of the guides lead to files that are there, and to parts that they have.
func TestGuidesLinkToWhatThereIs(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]+))?\)`)
	title := regexp.MustCompile(`(?m)^#+ (.+)$`)
	punctuation := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, file := range slices.Concat(readmes, guides) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			target := file
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(file), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
				continue
			}
			if m[2] == "" {
				continue
			}
			found := slices.ContainsFunc(title.FindAllStringSubmatch(read(t, target), -1), func(heading []string) bool {
				return strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-") == m[2]
			})
			if !found {
				t.Errorf("%s links to #%s, which %s does not have", file, m[2], target)
			}
		}
	}
}

// Tests that a README names as evidence are there.
func TestReadmesNameTestsThatThereAre(t *testing.T) {
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, "_test.go") {
			for _, m := range function.FindAllStringSubmatch(read(t, path), -1) {
				declared[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(readmes, guides) {
		named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(read(t, file), -1)
		for _, test := range named {
			if !declared[test] {
				t.Errorf("%s names %s, which is no test", file, test)
			}
		}
		if file == readmes[0] && len(named) == 0 {
			t.Errorf("%s names no test", file)
		}
	}
}
