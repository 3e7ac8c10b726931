package luascripts

import (
	"fmt"
	"strings"
	"testing"
)

func TestSchemaIsThatOfTheScripts(t *testing.T) {
	text, err := files.ReadFile("form.lua")
	if err != nil {
		t.Fatal(err)
	}
	if line := fmt.Sprintf("\nlocal SCHEMA = %d\n", Schema); !strings.Contains(string(text), line) {
		t.Errorf("form.lua has no line %q", line)
	}
}
