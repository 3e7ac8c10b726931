package luascripts

import (
	"fmt"
	"strings"
	"testing"
)

func TestSchemaIsThatOfTheScripts(t *testing.T) {
	text, err := files.ReadFile("clock.lua")
	if err != nil {
		t.Fatal(err)
	}
	if line := fmt.Sprintf("\nlocal SCHEMA = %d\n", Schema); !strings.Contains(string(text), line) {
		t.Errorf("clock.lua has no line %q", line)
	}
}
