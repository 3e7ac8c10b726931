// Package deploy holds what puts a gate into production. It has no code but the tests
// that read these files as the programs do that they are for.
package deploy

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slotgate/slotgate/rules"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tool finds a program that checks a file, or says how to get it.
func tool(t *testing.T, name, pack string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed; run: apt-get install -y --no-install-recommends %s", name, pack)
	}
	return path
}

// Every configuration here can be used as it stands, without a warning.
func TestConfigurationsLoad(t *testing.T) {
	found := 0
	_ = filepath.WalkDir(".", func(path string, _ fs.DirEntry, _ error) error {
		if filepath.Base(path) != "slotgate.yaml" {
			return nil
		}
		found++
		env := func(name string) (string, bool) { return "value-of-" + name, true }
		if _, faults := rules.Load(path, []byte(read(t, path)), rules.LoadOptions{Env: env}); len(faults) > 0 {
			t.Errorf("%s", faults)
		}
		return nil
	})
	if found < 2 {
		t.Errorf("%d configurations, which is too few to have looked right", found)
	}
}

// metricNames are those that the code has, with the series of histograms.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	quoted := regexp.MustCompile(`"(slotgate_[a-z_]+)"`)
	histogram := regexp.MustCompile(`histograms\("(slotgate_[a-z_]+)"`)
	files, _ := filepath.Glob("../gate/admin/*.go")
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := read(t, file)
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			names[m[1]] = true
		}
		for _, m := range histogram.FindAllStringSubmatch(text, -1) {
			delete(names, m[1])
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				names[m[1]+suffix] = true
			}
		}
	}
	if len(names) < 20 {
		t.Fatalf("found %d metrics in the code", len(names))
	}
	return names
}

func checkMetrics(t *testing.T, where, expr string, known map[string]bool) {
	t.Helper()
	for _, name := range regexp.MustCompile(`slotgate_[a-z_]+`).FindAllString(expr, -1) {
		if !known[name] {
			t.Errorf("%s asks for %s, which no gate has", where, name)
		}
	}
}

func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decode(t, "prometheus/alerts.yaml", &file)
	known := metricNames(t)
	alerts := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			alerts++
			checkMetrics(t, r.Alert, r.Expr, known)
			if r.Annotations["summary"] == "" || r.Annotations["runbook"] == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) {
				t.Errorf("%s has no summary, runbook or severity", r.Alert)
			}
		}
	}
	if alerts < 10 {
		t.Errorf("%d alerts", alerts)
	}
	if out, err := exec.Command(tool(t, "promtool", "prometheus"), "check", "rules", "prometheus/alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func TestDashboard(t *testing.T) {
	var board struct {
		Panels []struct {
			ID         int
			Title      string
			GridPos    struct{ H, W, X, Y int }
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	text := read(t, "grafana/slotgate.json")
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	known := metricNames(t)
	variables := []string{"__rate_interval"}
	for _, v := range board.Templating.List {
		variables = append(variables, v.Name)
		checkMetrics(t, v.Name, v.Query, known)
	}
	ids, places := map[int]bool{}, map[[2]int]bool{}
	for _, p := range board.Panels {
		place := [2]int{p.GridPos.X, p.GridPos.Y}
		if ids[p.ID] || places[place] || p.GridPos.X+p.GridPos.W > 24 || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q is in another's place, or asks nobody", p.Title)
		}
		ids[p.ID], places[place] = true, true
		for _, target := range p.Targets {
			checkMetrics(t, p.Title, target.Expr, known)
			for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("panel %q uses $%s, which is no variable", p.Title, m[1])
				}
			}
		}
	}
	if len(board.Panels) < 12 {
		t.Errorf("%d panels", len(board.Panels))
	}
}

// The unit, with a program that is there in place of the gate's, passes systemd's own
// check where systemd is installed.
func TestUnit(t *testing.T) {
	text := read(t, "systemd/slotgate.service")
	for _, want := range []string{"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n", "SystemCallFilter=@system-service", "slotgate check -c", "slotgate run -c", "ExecReload=/bin/kill -HUP $MAINPID\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit has no %s", strings.TrimSpace(want))
		}
	}
	if strings.Contains(text, "\nProcSubset=pid") {
		t.Error("the unit hides net.core.somaxconn: few connections would wait to be accepted")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	unit := filepath.Join(t.TempDir(), "slotgate.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/local/bin/slotgate", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || strings.Contains(string(out), "slotgate.service:") {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

func TestDockerfile(t *testing.T) {
	text := read(t, "docker/Dockerfile")
	stages := strings.Split(text, "\nFROM ")
	if len(stages) != 4 {
		t.Fatalf("%d stages", len(stages)-1)
	}
	for _, stage := range stages[2:] {
		if !strings.HasPrefix(stage, "scratch AS ") || !strings.Contains(stage, "\nUSER 65532:65532\n") || !strings.Contains(stage, "ENTRYPOINT [\"/") {
			t.Errorf("an image that is not from scratch, runs as root or has no entry point:\n%s", stage)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY --from=build (\S+)`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "/out/") && !strings.HasPrefix(m[1], "/etc/ssl/") {
			t.Errorf("copies %s", m[1])
		}
	}
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	if !strings.Contains(text, "FROM golang:"+goVersion+"-") {
		t.Errorf("does not build with Go %s, which go.mod asks for", goVersion)
	}
}
