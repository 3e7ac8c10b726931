package rules

// dialect is how backends of one kind read paths and methods, as upstream.dialect
// names them. What each does, by the routing documentation of the frameworks:
//
//	                        any  php  rack  express  spring  aspnet
//	escapes of unreserved    +    +    +      +        +       +     decoded
//	empty segments           +    +    +      +        +       +     skipped
//	trailing slash           +    +    +      +        +       +     ignored
//	dot segments             +    +    +      +        +       +     resolved
//	                         +    -    +      +        -       -     … or literal text
//	";parameters"            +    -    -      -        +       -     dropped
//	                         +    +    +      +        -       +     … or literal text
//	letter case of literals  +    +    -      +        -       +     ignored
//	".format" at the end     any  (1)  any    -       any     (2)    dropped
//	a script's other paths   +    +    -      -        -       +     of .php, of .aspx
//	  (match_script.go)
//	dots and blanks at the   +    -    -      -        -       +     of literals
//	  end, "::$DATA"
//	"/(S(id))"               +    -    -      -        -       +     dropped
//	"//host/" before it      +    +    -      +        -       -     dropped
//	X-Original-URL, "?s=/"   +    +    -      -        -       -     … or the path
//	  (match_rewrite.go)
//	override by header       (3)  (4)  (4)   (3)       -      (4)    on POST (any, php: on all)
//	  by _method in query    +    +    -      +        +       -
//	  by _method in a form   +    +    +      +        +       -     on POST
//	  by _method in JSON     +    +    -      +        -       -     … or not
//	JSON integers > 2^53     -    -    -      +        -       -     rounded
//
// (1) .php .html .json .xml, after literals. (2) .aspx .json .xml, after literals.
// (3) X-HTTP-Method-Override, X-HTTP-Method, X-Method-Override. (4) the first of them.
//
// Where the table has "… or", both are tried: one rule with one set of path
// variables has to come out. Under a named dialect the overriding method decides: php
// and rack are for frameworks that do as the table says; where a module has to be
// added (express, spring, aspnet) the method that was sent counts if the other has no
// rule. "any" tries both, and so does every dialect where an override is empty, no
// method there, or where only some look for it.
//
// Sources: Apache AcceptPathInfo, DirectoryIndex, MergeSlashes and MultiViews, nginx
// merge_slashes and try_files, Symfony Request.getMethod, Laravel
// Request.createFromBase, Symfony Request.prepareRequestUri below 4.1.3, Zend
// Controller_Request_Http, WordPress WP_REST_Server.serve_request, Slim
// MethodOverrideMiddleware, parse_url and URL of paths with two slashes, Rails routing
// "(.:format)", Rack::MethodOverride, Express strict and caseSensitive,
// method-override, Spring UrlPathHelper, suffixPatternMatch and
// HiddenHttpMethodFilter, Tomcat CoyoteAdapter, Kestrel dot segment removal, IIS
// PATH_INFO, ASP.NET FriendlyUrls and cookieless sessions, ASP.NET Core
// HttpMethodOverrideMiddleware.
type dialect struct {
	// lax tries the method that was sent next to what overrides it.
	lax bool
	// optional: only a module that many applications lack overrides methods, so that
	// one without a rule leaves the method that was sent.
	optional bool

	keepsDots       bool
	keepsParameters bool
	dropsParameters bool
	foldsCase       bool
	formats         formats
	scripts         []string // extensions, lower case
	multiViews      bool     // /index/… is /index.php/…
	windows         bool     // names are those of files on Windows, by way of ASP.NET

	hosts    bool // a path may begin with //host
	rewrites bool // rewriteHeaders and routeParameters may hold the path

	headers     []string // that override the method
	onAll       bool     // … of any request, and not of POST alone
	query, form bool     // _method there does
	plainForms  bool     // … unless it is multipart
	json        bool     // _method in JSON may
	methods     []string // that an override may name

	doubles bool // JSON integers beyond 2^53 are rounded
}

// formats are the suffixes that a backend drops from the last segment.
type formats struct {
	every    bool     // any text after a dot, after variables too
	literals []string // these, lower case, after a literal
}

var (
	overrideHeaders = []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"}
	commonMethods   = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

	dialects = map[string]*dialect{
		"any": {
			lax: true, keepsDots: true, keepsParameters: true, dropsParameters: true, foldsCase: true,
			formats: formats{every: true},
			scripts: []string{".php", ".phtml", ".aspx", ".ashx", ".asmx"}, multiViews: true, windows: true,
			hosts: true, rewrites: true,
			headers: overrideHeaders, query: true, form: true, json: true,
		},
		"php": {
			keepsParameters: true, foldsCase: true,
			formats: formats{literals: []string{".php", ".html", ".json", ".xml"}},
			scripts: []string{".php", ".phtml"}, multiViews: true,
			hosts: true, rewrites: true,
			headers: overrideHeaders[:1], onAll: true, query: true, form: true, json: true, methods: commonMethods,
		},
		"rack": {
			keepsDots: true, keepsParameters: true,
			formats: formats{every: true},
			headers: overrideHeaders[:1], form: true, methods: commonMethods,
		},
		"express": {
			keepsDots: true, keepsParameters: true, foldsCase: true,
			hosts:    true,
			optional: true, headers: overrideHeaders, query: true, form: true, plainForms: true, json: true, methods: commonMethods,
			doubles: true,
		},
		"spring": {
			dropsParameters: true,
			formats:         formats{every: true},
			optional:        true, query: true, form: true, methods: []string{"PUT", "PATCH", "DELETE"},
		},
		"aspnet": {
			keepsParameters: true, foldsCase: true,
			formats: formats{literals: []string{".aspx", ".json", ".xml"}},
			scripts: []string{".aspx", ".ashx", ".asmx"}, windows: true,
			optional: true, headers: overrideHeaders[:1], methods: commonMethods,
		},
	}
)

// dialectNamed takes no name for any.
func dialectNamed(name string) *dialect {
	if d, ok := dialects[name]; ok {
		return d
	}
	return dialects["any"]
}
