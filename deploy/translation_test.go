package deploy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// part is what of a text does not depend on its language, from a heading to the next.
type part struct {
	level   int    // of the heading
	title   string // in its own language, to find it
	blocks  []string
	rows    []string // of tables: their shape
	code    []string // sorted
	numbers []string // outside of code, sorted
	links   []string // from the top of the repository, sorted
}

var (
	headingLine = regexp.MustCompile(`^(#+) (.+)`)
	inlineCode  = regexp.MustCompile("`[^`]+`")
	linkTarget  = regexp.MustCompile(`\]\(([^)#]*)[^)]*\)`)
	anyNumber   = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
)

// partsOf takes a document apart; dir is where it stands.
func partsOf(text, dir string) []part {
	parts := []part{{}}
	prose := []*strings.Builder{{}}
	var block *strings.Builder
	for line := range strings.Lines(text) {
		now := &parts[len(parts)-1]
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && block == nil:
			block = &strings.Builder{}
			block.WriteString(line)
		case fence:
			now.blocks = append(now.blocks, block.String()+line)
			block = nil
		case block != nil:
			block.WriteString(line)
		case headingLine.MatchString(line):
			m := headingLine.FindStringSubmatch(line)
			parts = append(parts, part{level: len(m[1]), title: m[2]})
			prose = append(prose, &strings.Builder{})
		default:
			if strings.HasPrefix(line, "|") {
				now.rows = append(now.rows, rowShape(line))
			}
			prose[len(prose)-1].WriteString(strings.ReplaceAll(line, "\n", " "))
		}
	}
	for i := range parts {
		parts[i].read(prose[i].String(), dir)
	}
	return parts
}

// rowShape is a row's number of cells, its code and its numbers, in order.
func rowShape(line string) string {
	code := inlineCode.FindAllString(line, -1)
	numbers := anyNumber.FindAllString(inlineCode.ReplaceAllString(line, ""), -1)
	return fmt.Sprint(strings.Count(inlineCode.ReplaceAllString(line, ""), "|"), code, numbers)
}

func (p *part) read(prose, dir string) {
	for _, m := range linkTarget.FindAllStringSubmatch(prose, -1) {
		if m[1] != "" {
			p.links = append(p.links, filepath.Join(dir, m[1]))
		}
	}
	prose = linkTarget.ReplaceAllString(prose, "]")
	p.code = inlineCode.FindAllString(prose, -1)
	p.numbers = anyNumber.FindAllString(inlineCode.ReplaceAllString(prose, ""), -1)
	slices.Sort(p.code)
	slices.Sort(p.numbers)
	slices.Sort(p.links)
}

// The Chinese README says what the English one says: part by part the same commands,
// names, numbers, tables and links.
func TestTheChineseReadmeFollowsTheEnglishOne(t *testing.T) {
	english, chinese := partsOf(read(t, "../README.md"), ""), partsOf(read(t, "README.zh-CN.md"), "deploy")
	if len(english) != len(chinese) {
		t.Fatalf("README.md has %d headings, README.zh-CN.md %d", len(english)-1, len(chinese)-1)
	}
	if len(english) < 10 {
		t.Fatalf("README.md has only %d headings", len(english)-1)
	}
	for i, en := range english {
		zh := chinese[i]
		if en.level != zh.level {
			t.Errorf("%q is a heading of level %d, %q of %d", en.title, en.level, zh.title, zh.level)
		}
		// Each document begins with a link to the other.
		for _, list := range []*[]string{&en.links, &zh.links} {
			*list = slices.DeleteFunc(*list, func(l string) bool { return i == 1 && strings.Contains(l, "README") })
		}
		for what, lists := range map[string][2][]string{
			"block": {en.blocks, zh.blocks}, "table row": {en.rows, zh.rows}, "code": {en.code, zh.code},
			"number": {en.numbers, zh.numbers}, "link": {en.links, zh.links},
		} {
			only, missing := minus(lists[1], lists[0]), minus(lists[0], lists[1])
			if !slices.Equal(lists[0], lists[1]) {
				t.Errorf("%s, part %q: %s of README.md that it lacks: %q; that README.md does not have: %q", "README.zh-CN.md", zh.title, what, missing, only)
			}
		}
	}
}

// minus is a without what b has, each as often as it is there.
func minus(a, b []string) []string {
	rest := slices.Clone(b)
	return slices.DeleteFunc(slices.Clone(a), func(text string) bool {
		i := slices.Index(rest, text)
		if i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
		return i >= 0
	})
}
