package deploy

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/slotgate/slotgate/rules"
)

// decode reads one document into what a file of its kind may have: a field that the
// type does not know is a fault, as it is where the file is used.
func decode(t *testing.T, name string, into any) {
	t.Helper()
	in := yaml.NewDecoder(strings.NewReader(read(t, name)))
	in.KnownFields(true)
	if err := in.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := in.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		t.Fatalf("%s has a second document", name)
	}
}

// The types of Kubernetes' API (apps/v1, core/v1, policy/v1, networking.k8s.io/v1), as
// far as the manifests use them.
type (
	metadata struct {
		Name                string
		Labels, Annotations map[string]string
	}
	selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	secretKey struct{ Name, Key string }
	env       struct {
		Name, Value string
		ValueFrom   struct {
			SecretKeyRef secretKey `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	probe struct {
		HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
		PeriodSeconds    int                         `yaml:"periodSeconds"`
		TimeoutSeconds   int                         `yaml:"timeoutSeconds"`
		FailureThreshold int                         `yaml:"failureThreshold"`
	}
	container struct {
		Name, Image string
		Args        []string
		Env         []env
		Ports       []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		StartupProbe   *probe `yaml:"startupProbe"`
		LivenessProbe  *probe `yaml:"livenessProbe"`
		ReadinessProbe *probe `yaml:"readinessProbe"`
		Lifecycle      struct {
			PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
		}
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext struct {
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	deployment struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			Replicas int
			Selector selector
			Strategy struct {
				Type          string
				RollingUpdate struct {
					MaxUnavailable int `yaml:"maxUnavailable"`
					MaxSurge       int `yaml:"maxSurge"`
				} `yaml:"rollingUpdate"`
			}
			Template struct {
				Metadata metadata
				Spec     struct {
					TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
					AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
					SecurityContext               struct {
						RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
						RunAsUser      int                   `yaml:"runAsUser"`
						RunAsGroup     int                   `yaml:"runAsGroup"`
						SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
					} `yaml:"securityContext"`
					Containers []container
					Volumes    []struct {
						Name      string
						ConfigMap struct{ Name string } `yaml:"configMap"`
					}
					TopologySpreadConstraints []struct {
						MaxSkew           int      `yaml:"maxSkew"`
						TopologyKey       string   `yaml:"topologyKey"`
						WhenUnsatisfiable string   `yaml:"whenUnsatisfiable"`
						LabelSelector     selector `yaml:"labelSelector"`
					} `yaml:"topologySpreadConstraints"`
				}
			}
		}
	}
	port struct {
		Name, Protocol string
		Port           int
		TargetPort     string `yaml:"targetPort"`
	}
	service struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			Selector map[string]string
			Ports    []port
		}
	}
	disruptionBudget struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			MinAvailable int `yaml:"minAvailable"`
			Selector     selector
		}
	}
	networkPolicy struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			PodSelector selector `yaml:"podSelector"`
			PolicyTypes []string `yaml:"policyTypes"`
			Ingress     []struct {
				From []struct {
					NamespaceSelector selector `yaml:"namespaceSelector"`
				}
				Ports []port
			}
		}
	}
	kustomization struct {
		APIVersion         string `yaml:"apiVersion"`
		Kind, Namespace    string
		Resources          []string
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
	}
)

const base = "kubernetes/base/"

// kinds are what a cluster takes the manifests for.
var kinds = map[string]string{
	"kustomization.yaml": "kustomize.config.k8s.io/v1beta1 Kustomization",
	"namespace.yaml":     "v1 Namespace",
	"deployment.yaml":    "apps/v1 Deployment",
	"service.yaml":       "v1 Service",
	"disruption.yaml":    "policy/v1 PodDisruptionBudget",
	"network.yaml":       "networking.k8s.io/v1 NetworkPolicy",
}

func TestKubernetesKinds(t *testing.T) {
	files, _ := filepath.Glob(base + "*.yaml")
	if len(files) != len(kinds)+1 {
		t.Errorf("%d files, %d kinds and slotgate.yaml", len(files), len(kinds))
	}
	for file, want := range kinds {
		var m struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
		}
		if err := yaml.Unmarshal([]byte(read(t, base+file)), &m); err != nil || m.APIVersion+" "+m.Kind != want {
			t.Errorf("%s is %s %s, want %s: %v", file, m.APIVersion, m.Kind, want, err)
		}
	}
}

func TestKubernetesBase(t *testing.T) {
	var k kustomization
	decode(t, base+"kustomization.yaml", &k)
	if files, _ := filepath.Glob(base + "*.yaml"); len(files) != len(k.Resources)+2 {
		t.Errorf("%d files, and the kustomization names %d and slotgate.yaml", len(files), len(k.Resources))
	}
	var d deployment
	decode(t, base+"deployment.yaml", &d)
	pod := d.Spec.Template
	labels := pod.Metadata.Labels
	for name, got := range map[string]map[string]string{"deployment": d.Spec.Selector.MatchLabels, "spread": pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels} {
		if got["app.kubernetes.io/name"] != labels["app.kubernetes.io/name"] {
			t.Errorf("%s selects %v, pods are %v", name, got, labels)
		}
	}
	if !pod.Spec.SecurityContext.RunAsNonRoot || *pod.Spec.AutomountServiceAccountToken {
		t.Error("the pod may be root, or has a token it does not need")
	}
	for _, c := range pod.Spec.Containers {
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || c.Resources.Limits["memory"] == "" {
			t.Errorf("container %s may do more than it needs", c.Name)
		}
	}
	gate := pod.Spec.Containers[0]
	config, _ := rules.Load("slotgate.yaml", []byte(read(t, base+"slotgate.yaml")), rules.LoadOptions{Env: func(string) (string, bool) { return "x", true }})
	if config == nil {
		t.Fatal("slotgate.yaml cannot be used")
	}
	grace := time.Duration(pod.Spec.TerminationGracePeriodSeconds) * time.Second
	pause := time.Duration(gate.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	if pause == 0 || grace < pause+config.Server.Drain+time.Second {
		t.Errorf("killed after %v, with a pause of %v and %v to drain", grace, pause, config.Server.Drain)
	}
	for _, p := range []*probe{gate.StartupProbe, gate.LivenessProbe, gate.ReadinessProbe} {
		if p == nil || p.HTTPGet.Port != "admin" || !strings.HasSuffix(p.HTTPGet.Path, "z") {
			t.Errorf("probe %+v", p)
		}
	}
	mount := gate.VolumeMounts[0]
	if !slices.ContainsFunc(gate.Args, func(a string) bool { return strings.HasPrefix(a, mount.MountPath+"/") }) || k.ConfigMapGenerator[0].Name != pod.Spec.Volumes[0].ConfigMap.Name {
		t.Error("the configuration is not where the gate looks for it")
	}
	api := pod.Spec.Containers[1]
	if stays := time.Duration(api.Lifecycle.PreStop.Sleep.Seconds) * time.Second; stays <= pause+config.Server.Drain || grace <= stays {
		t.Errorf("the API is told to stop after %v, and killed after %v; the gate asks it for %v", stays, grace, pause+config.Server.Drain)
	}
	if !slices.ContainsFunc(api.Args, func(a string) bool { return a == strings.TrimPrefix(config.Upstream.URL, "http://") }) {
		t.Error("the API does not listen where the gate looks for it, on loopback")
	}

	var s service
	decode(t, base+"service.yaml", &s)
	if s.Spec.Selector["app.kubernetes.io/name"] != labels["app.kubernetes.io/name"] || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].TargetPort != "http" {
		t.Errorf("the service leads elsewhere: %+v", s.Spec)
	}
	var b disruptionBudget
	decode(t, base+"disruption.yaml", &b)
	if b.Spec.MinAvailable < 1 || b.Spec.MinAvailable >= d.Spec.Replicas {
		t.Errorf("%d of %d pods must stay", b.Spec.MinAvailable, d.Spec.Replicas)
	}
	var n networkPolicy
	decode(t, base+"network.yaml", &n)
	if open := n.Spec.Ingress[0]; len(open.From) != 0 || len(open.Ports) != 1 || open.Ports[0].Port != 8080 {
		t.Errorf("everybody may reach %+v", open)
	}
	var ns struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
	}
	decode(t, base+"namespace.yaml", &ns)
	if ns.Metadata.Name != k.Namespace {
		t.Errorf("namespace %s, resources go to %s", ns.Metadata.Name, k.Namespace)
	}
}

// composeService is a service as the Compose Specification has it, as far as it is used.
type composeService struct {
	Image, Restart string
	Build          struct{ Context, Dockerfile, Target string }
	Command        []string
	Environment    map[string]string
	Volumes, Ports []string
	Configs        []struct{ Source, Target string }
	Healthcheck    struct {
		Test              []string
		Interval, Timeout string
		Retries           int
	}
	DependsOn       map[string]struct{ Condition string } `yaml:"depends_on"`
	ReadOnly        bool                                  `yaml:"read_only"`
	CapDrop         []string                              `yaml:"cap_drop"`
	SecurityOpt     []string                              `yaml:"security_opt"`
	StopGracePeriod string                                `yaml:"stop_grace_period"`
}

func TestCompose(t *testing.T) {
	var file struct {
		Name     string
		Services map[string]composeService
		Configs  map[string]struct{ File string }
		Volumes  map[string]struct{}
	}
	decode(t, "docker/compose.yaml", &file)
	for name, s := range file.Services {
		for on := range s.DependsOn {
			if _, ok := file.Services[on]; !ok {
				t.Errorf("%s waits for %s, which is not there", name, on)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := file.Volumes[volume]; !ok {
				t.Errorf("%s uses volume %s, which is not there", name, volume)
			}
		}
		if target := s.Build.Target; target != "" && !strings.Contains(read(t, "docker/Dockerfile"), " AS "+target+"\n") {
			t.Errorf("%s is built from stage %s, which is not there", name, target)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") || !strings.HasPrefix(name, "gate-") {
				t.Errorf("%s can be reached at %s", name, p)
			}
		}
		if strings.HasPrefix(name, "gate-") {
			grace, err := time.ParseDuration(s.StopGracePeriod)
			if err != nil || grace <= 16*time.Second || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Configs[0].Target != "/etc/slotgate.yaml" {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
	if file.Configs["slotgate"].File != "slotgate.yaml" || len(file.Services) != 5 {
		t.Errorf("%d services, configuration %q", len(file.Services), file.Configs["slotgate"].File)
	}
}
