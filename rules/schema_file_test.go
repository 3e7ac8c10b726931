package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// modeline is how the first line of a file tells an editor where its schema is, from
// the file's own folder.
const modeline = "# yaml-language-server: $schema="

// exampleSchema is the file that the example names.
func exampleSchema(t *testing.T) string {
	t.Helper()
	first, _, _ := strings.Cut(readFile(t, filepath.Join("..", "config.example.yaml")), "\n")
	name, found := strings.CutPrefix(first, modeline)
	if !found || filepath.IsAbs(name) || strings.Contains(name, "://") {
		t.Fatalf("the example begins with %q, which names no file of the repository", first)
	}
	return filepath.Join("..", filepath.FromSlash(name))
}

func TestTheSchemaFileIsOfThisCode(t *testing.T) {
	content, err := os.ReadFile(exampleSchema(t))
	if err != nil || string(content) != string(JSONSchema()) {
		t.Errorf("rules/schema.json is not what the code says (%v): go run ./cmd/slotgate check --schema > rules/schema.json", err)
	}
}

// What an editor does: it compiles the file that the first line names, and holds the
// configuration to it.
func TestTheExampleIsValidByItsOwnFirstLine(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(exampleSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	src := readFile(t, filepath.Join("..", "config.example.yaml"))
	if err := schema.Validate(asJSON(t, src)); err != nil {
		t.Error(err)
	}
	for _, row := range []struct{ from, to string }{
		{"max_body: 1MiB ", "max_body: 1 MB "},
		{"max_header: 16KiB ", "max_headers: 16KiB "},
		{"unmatched: pass ", "unmatched: refuse "},
		{"timeout: 250ms ", "timeout: 250 "},
		{"capacity: 6 ", "capacity: six "},
		{"methods: [POST] ", "methods: POST "},
		{"subject: json:/student_id ", "subject: student_id "},
		{"is: sold_out }", "is: soldout }"},
		{"action: book ", "action: reserve "},
		{"version: 1\n", "version: 2\n"},
	} {
		bad := strings.Replace(src, row.from, row.to, 1)
		if bad == src {
			t.Errorf("the example has no %q", row.from)
		} else if schema.Validate(asJSON(t, bad)) == nil {
			t.Errorf("the schema accepts %s", row.to)
		}
	}
}

// Whatever the cursor is on, an editor has something to say.
func TestTheSchemaDescribesEveryField(t *testing.T) {
	seen := 0
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case []any:
			for _, item := range node {
				walk(path, item)
			}
		case map[string]any:
			properties, _ := node["properties"].(map[string]any)
			for name, property := range properties {
				seen++
				if text, _ := property.(map[string]any)["description"].(string); text == "" {
					t.Errorf("%s/properties/%s has no description", path, name)
				}
			}
			for name, part := range node {
				walk(path+"/"+name, part)
			}
		}
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(JSONSchema())))
	if err != nil {
		t.Fatal(err)
	}
	walk("", doc)
	if seen < 100 {
		t.Errorf("saw only %d fields", seen)
	}
}
