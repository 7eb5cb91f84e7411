/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual.h"

/* Text as roff shows it: no escape, no hyphenation of options, no request at a line's start. */
static void add_roff(struct strbuf *out, const char *text)
{
	for (bool start = true; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			strbuf_add_text(out, "\\&");
		if (*text == '\\')
			strbuf_add_text(out, "\\e");
		else if (*text == '-')
			strbuf_add_text(out, "\\-");
		else
			strbuf_add_byte(out, *text);
		start = *text == '\n';
	}
}

static void add_option(const struct option_spec *option, struct strbuf *out)
{
	struct strbuf told = { 0 };

	strbuf_add_text(out, ".TP\n");
	if (option->letter)
		strbuf_addf(out, "\\fB\\-%c\\fR, ", option->letter);
	strbuf_add_text(out, "\\fB\\-\\-");
	add_roff(out, option->name);
	strbuf_add_text(out, "\\fR");
	if (option->metavar) {
		strbuf_add_text(out, " \\fI");
		add_roff(out, option->metavar);
		strbuf_add_text(out, "\\fR");
	}
	strbuf_add_byte(out, '\n');
	options_add_default(option, &told);
	add_roff(out, option->help);
	add_roff(out, strbuf_text(&told));
	strbuf_add_byte(out, '\n');
	strbuf_free(&told);
}

static void add_verb(const struct option_verb *spec, struct strbuf *out)
{
	strbuf_add_text(out, ".SS \"firn ");
	add_roff(out, spec->name);
	strbuf_add_text(out, "\"\n");
	add_roff(out, spec->summary);
	strbuf_add_text(out, "\n.PP\n\\fBfirn ");
	add_roff(out, spec->name);
	strbuf_add_text(out, "\\fR [\\fIOPTIONS\\fR] ");
	add_roff(out, spec->operands);
	strbuf_add_text(out, "\n.PP\n.nf\n");
	add_roff(out, spec->details);
	strbuf_add_text(out, "\n.fi\n");
	for (size_t i = 0; i < spec->options_count; i++)
		add_option(spec->options[i].spec, out);
}

void manual_page(const struct verb *const *verbs, size_t count, struct strbuf *out)
{
	strbuf_add_text(out,
			".TH FIRN 1 \"\" \"firn " FIRN_VERSION "\"\n.SH NAME\n"
			"firn \\- continuous profiling for everything you run\n"
			".SH SYNOPSIS\n\\fBfirn\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR] "
			"[\\fIOPERANDS\\fR]\n"
			".SH DESCRIPTION\nOne program: it samples this host, keeps profiles, "
			"answers queries about them, and reads and writes other tools' "
			"files. \\fBfirn\\fR \\fIVERB\\fR \\fB\\-\\-help\\fR says what follows "
			"here about each verb.\n.SH VERBS\n");
	for (size_t i = 0; i < count; i++)
		add_verb(verbs[i]->spec, out);
	strbuf_add_text(out, ".SH EXIT STATUS\n0 success, 1 a negative answer, 2 an error.\n"
			     ".SH ENVIRONMENT\n.TP\n\\fBFIRN_BEARER_TOKEN\\fR\n"
			     "the token for servers that want one, unless an option names it\n");
}

/* The words of a script: first those that verbs begin with, then each verb's options. */
static void add_names(const struct verb *const *verbs, size_t count, struct strbuf *out)
{
	for (size_t i = 0; i < count; i++) {
		struct slice rest, word = slice_cut(slice_of(verbs[i]->spec->name), ' ', &rest);
		struct slice before = { 0 };

		if (i)
			before = slice_cut(slice_of(verbs[i - 1]->spec->name), ' ', &rest);
		if (!slice_equal(word, before))
			strbuf_addf(out, "%s%.*s", i ? " " : "", SLICE_FMT(word));
	}
}

static void add_options(const struct option_verb *spec, struct strbuf *out)
{
	for (size_t i = 0; i < spec->options_count; i++)
		strbuf_addf(out, "--%s ", spec->options[i].spec->name);
	strbuf_add_text(out, "--help");
}

/* The second words of verbs of two, by their first: "store" -> "verify stat ...". */
static void add_seconds(const struct verb *const *verbs, size_t count, const char *variable,
			struct strbuf *out)
{
	struct slice open = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct slice second,
			first = slice_cut(slice_of(verbs[i]->spec->name), ' ', &second);

		if (!second.len)
			continue;
		if (slice_equal(first, open)) {
			strbuf_addf(out, " %.*s", SLICE_FMT(second));
			continue;
		}
		if (open.len)
			strbuf_add_text(out, "\" ;;\n");
		strbuf_addf(out, "\t%.*s) %s=\"%.*s", SLICE_FMT(first), variable,
			    SLICE_FMT(second));
		open = first;
	}
	if (open.len)
		strbuf_add_text(out, "\" ;;\n");
}

static void add_bash(const struct verb *const *verbs, size_t count, struct strbuf *out)
{
	strbuf_add_text(out, "# Completion of firn for bash; made by `firn completion bash`.\n"
			     "_firn()\n{\n"
			     "\tlocal cur=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
			     "\tlocal verb=\"${COMP_WORDS[1]}\" two=\"${COMP_WORDS[1]} "
			     "${COMP_WORDS[2]}\"\n"
			     "\tCOMPREPLY=()\n"
			     "\tif [ \"$COMP_CWORD\" = 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"");
	add_names(verbs, count, out);
	strbuf_add_text(out, "\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
			     "\tif [ \"$COMP_CWORD\" = 2 ]; then\n\t\tcase \"$verb\" in\n");
	add_seconds(verbs, count, "words", out);
	strbuf_add_text(out, "\t\tesac\n\tfi\n\tcase \"$two\" in\n");
	for (size_t i = 0; i < count; i++) {
		const struct option_verb *spec = verbs[i]->spec;

		strbuf_addf(out, "\t\"%s%s) [ -n \"$words\" ] || words=\"", spec->name,
			    strchr(spec->name, ' ') ? "\"" : " \"*");
		add_options(spec, out);
		strbuf_add_text(out, "\" ;;\n");
	}
	strbuf_add_text(out, "\tesac\n"
			     "\tcase \"$cur\" in\n"
			     "\t-*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
			     "\t*)\n"
			     "\t\tcase \"$words\" in\n"
			     "\t\t--*|'') COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
			     "\t\t*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
			     "\t\tesac ;;\n"
			     "\tesac\n}\n"
			     "complete -o filenames -o bashdefault -F _firn firn\n");
}

/* In single quotes, as zsh and fish read them. */
static void add_quoted(struct strbuf *out, const char *text, bool fish)
{
	strbuf_add_byte(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			strbuf_add_text(out, fish ? "\\'" : "'\\''");
		else if (*text == '\\' && fish)
			strbuf_add_text(out, "\\\\");
		else if (!fish && strchr("[]:", *text))
			strbuf_addf(out, "\\%c", *text);
		else
			strbuf_add_byte(out, *text);
	}
	strbuf_add_byte(out, '\'');
}

static void add_zsh_option(const struct option_spec *option, struct strbuf *out)
{
	strbuf_addf(out, "\t\t\t--%s%s\"[\"", option->name, option->metavar ? "=" : "");
	add_quoted(out, option->help, false);
	strbuf_add_text(out, "\"]\"");
	if (option->metavar) {
		strbuf_add_text(out, "\":\"");
		add_quoted(out, option->metavar, false);
		strbuf_add_text(out, "\":_files\"");
	}
	strbuf_add_text(out, " \\\n");
}

static void add_zsh(const struct verb *const *verbs, size_t count, struct strbuf *out)
{
	strbuf_add_text(out,
			"#compdef firn\n# Completion of firn for zsh; made by `firn completion "
			"zsh`.\n_firn() {\n\tlocal verb\n"
			"\tif (( CURRENT == 2 )); then\n\t\tcompadd -- ");
	add_names(verbs, count, out);
	strbuf_add_text(out, "\n\t\treturn\n\tfi\n\tverb=$words[2]\n"
			     "\tlocal words_of=\"\"\n\tcase $verb in\n");
	add_seconds(verbs, count, "words_of", out);
	strbuf_add_text(out, "\tesac\n\tif [[ -n $words_of ]]; then\n"
			     "\t\tif (( CURRENT == 3 )); then\n\t\t\tcompadd -- ${=words_of}\n"
			     "\t\t\treturn\n\t\tfi\n\t\tverb=\"$words[2] $words[3]\"\n\tfi\n"
			     "\tcase $verb in\n");
	for (size_t i = 0; i < count; i++) {
		const struct option_verb *spec = verbs[i]->spec;

		strbuf_addf(out, "\t\"%s\")\n\t\t_arguments \\\n", spec->name);
		for (size_t at = 0; at < spec->options_count; at++)
			add_zsh_option(spec->options[at].spec, out);
		strbuf_add_text(out, "\t\t\t'*:operand:_files' ;;\n");
	}
	strbuf_add_text(out, "\tesac\n}\n_firn \"$@\"\n");
}

static void add_fish_verb(const struct option_verb *spec, struct strbuf *out)
{
	struct slice second, first = slice_cut(slice_of(spec->name), ' ', &second);

	if (second.len)
		strbuf_addf(
			out,
			"complete -c firn -n '__fish_seen_subcommand_from %.*s; and test (count "
			"(commandline -opc)) -eq 2' -f -a %.*s -d ",
			SLICE_FMT(first), SLICE_FMT(second));
	else
		strbuf_addf(out, "complete -c firn -n __fish_use_subcommand -f -a %.*s -d ",
			    SLICE_FMT(first));
	add_quoted(out, spec->summary, true);
	strbuf_add_byte(out, '\n');
	for (size_t i = 0; i < spec->options_count; i++) {
		const struct option_spec *option = spec->options[i].spec;

		strbuf_addf(out, "complete -c firn -n '__fish_seen_subcommand_from %.*s",
			    SLICE_FMT(first));
		if (second.len)
			strbuf_addf(out, "; and __fish_seen_subcommand_from %.*s",
				    SLICE_FMT(second));
		strbuf_addf(out, "' -l %s%s -d ", option->name, option->metavar ? " -r" : "");
		add_quoted(out, option->help, true);
		strbuf_add_byte(out, '\n');
	}
}

static void add_fish(const struct verb *const *verbs, size_t count, struct strbuf *out)
{
	struct slice before = { 0 };

	strbuf_add_text(out, "# Completion of firn for fish; made by `firn completion fish`.\n");
	for (size_t i = 0; i < count; i++) {
		struct slice second,
			first = slice_cut(slice_of(verbs[i]->spec->name), ' ', &second);

		if (second.len && !slice_equal(first, before))
			strbuf_addf(out, "complete -c firn -n __fish_use_subcommand -f -a %.*s\n",
				    SLICE_FMT(first));
		before = first;
		add_fish_verb(verbs[i]->spec, out);
	}
}

bool manual_completion(const char *shell, const struct verb *const *verbs, size_t count,
		       struct strbuf *out)
{
	if (!strcmp(shell, "bash"))
		add_bash(verbs, count, out);
	else if (!strcmp(shell, "zsh"))
		add_zsh(verbs, count, out);
	else if (!strcmp(shell, "fish"))
		add_fish(verbs, count, out);
	else
		return false;
	return true;
}

/* A cell of a table: what ends it early is escaped. */
static void add_cell(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("|*<>[]", *text))
			strbuf_add_byte(out, '\\');
		strbuf_add_byte(out, *text);
	}
}

static void add_markdown_option(const struct option_spec *option, struct strbuf *out)
{
	struct strbuf told = { 0 };

	strbuf_add_text(out, "| `");
	if (option->letter)
		strbuf_addf(out, "-%c`, `", option->letter);
	strbuf_addf(out, "--%s", option->name);
	for (const char *c = option->metavar ? option->metavar : ""; *c; c++) {
		strbuf_add_text(out, c == option->metavar ? " " : "");
		strbuf_addf(out, *c == '|' ? "\\%c" : "%c", *c);
	}
	strbuf_add_text(out, "` | ");
	options_add_default(option, &told);
	add_cell(out, option->help);
	add_cell(out, strbuf_text(&told));
	strbuf_add_text(out, " |\n");
	strbuf_free(&told);
}

void manual_markdown(const struct verb *const *verbs, size_t count, struct strbuf *out)
{
	strbuf_add_text(out, "# Options of firn\n\nMade by `firn manual --markdown`; "
			     "`make docs` writes it anew. Every verb also takes `--help`.\n");
	for (size_t i = 0; i < count; i++) {
		const struct option_verb *spec = verbs[i]->spec;

		strbuf_addf(
			out,
			"\n## firn %s\n\n    firn %s [OPTIONS]%s%s\n\n%s.\n\n| option | meaning "
			"|\n|---|---|\n",
			spec->name, spec->name, spec->operands[0] ? " " : "", spec->operands,
			spec->summary);
		for (size_t at = 0; at < spec->options_count; at++)
			add_markdown_option(spec->options[at].spec, out);
	}
}
