package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shownExplanation is a command of the recipes with what it prints.
var shownExplanation = regexp.MustCompile("(?s)```\n\\$ slotgate (explain [^\n]*)\n(.*?)```")

// TestRecipesShowWhatExplainPrints: the README of the recipes is what a first user reads.
func TestRecipesShowWhatExplainPrints(t *testing.T) {
	t.Chdir("../../deploy/recipes")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := shownExplanation.FindAllStringSubmatch(string(text), -1)
	if len(shown) != 5 {
		t.Fatalf("README.md shows %d explanations, want one of each recipe", len(shown))
	}
	for _, m := range shown {
		words, err := shellWords(m[1])
		if err != nil {
			t.Fatal(err)
		}
		var filter []string
		if i := slices.Index(words, "|"); i >= 0 {
			words, filter = words[:i], words[i+1:]
		}
		var out, errs bytes.Buffer
		if status := explainCommand(words[1:], nil, &out, &errs); status != checkUsable {
			t.Errorf("%s: exit %d: %s", m[1], status, &errs)
			continue
		}
		if got := filtered(t, out.String(), filter); got != m[2] {
			t.Errorf("%s prints:\n%s\nREADME.md shows:\n%s", m[1], got, m[2])
		}
	}
}

// filtered is the output of a program that reads text; none leaves it.
func filtered(t *testing.T, text string, program []string) string {
	t.Helper()
	if program == nil {
		return text
	}
	command := exec.Command(program[0], program[1:]...)
	command.Stdin = strings.NewReader(text)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%q: %v", program, err)
	}
	return string(out)
}
