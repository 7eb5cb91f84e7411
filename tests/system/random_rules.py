# SPDX-License-Identifier: Apache-2.0
"""Random rules of relabelling, most of them right, as Prometheus' files have them. Two tests give the same to
`promtool` and to firn."""

VALUES = ["", "x", "X", "web-1", "web-22", "eu;west", "a.b.c", "Straße", "ÄÖ", "ǆ", "ﬁ", "İ", "日本", "1",
          "true", " lead",
          "$1", "${1}", "\\", "10.0.0.7:9", "K", "long" * 40]
PATTERNS = ["(.*)", ".*", ".+", "", "x", "web-(\\d+)", "(?i)web.*", "([a-z]+)-(?P<n>[0-9]+)", "(a|b|x)+", "(.)(.*)",
            "[^;]*;(.*)",
            "(?:eu|us);(west|east)", "h[12](:.*)?", "([^:]+)(?::\\d+)?", "\\p{Lu}+", "(x)?(y)?", "(?s).", ".", "^x$",
            "\\Qa.b\\E.*",
            "a.b.c", "(", "*", "(?P<n>x", "[z-a]", "x{2,1}", "(?<n>x)", "a{1001}", "\\C"]
RIGHT_PATTERNS = 21
FORMS = ["$1", "${1}", "$n", "${n}-$2", "$$1", "$1x", "${1}x", "fix", "", "$0", "$", "a$", "${", "$9", "-$1-", "é$2"]
ACTIONS = ["replace", "keep", "drop", "keepequal", "dropequal", "hashmod", "labelmap", "labeldrop",
           "labelkeep", "lowercase", "uppercase"]


class RandomRules:
    """Rules that ask for `names`, and write to `targets`: first such as are labels, then `forms` of them that are
    labels once groups are in their place, then `wrong` ones. Labels are mapped by `maps`, dropped by `drops` and kept
    by `keeps`, which are patterns."""

    def __init__(self, rng, names, targets, forms, wrong, maps, drops, keeps):
        self.rng = rng
        self.names = names
        self.targets, self.forms, self.wrong = targets, targets + forms, targets + forms + wrong
        self.maps, self.drops, self.keeps = maps, drops, keeps

    def one_of(self, weight, choices):
        """One of them, or None so often that most rules stay right."""
        return self.rng.choice(choices) if self.rng.random() < weight else None

    def target(self, action, right):
        if not right:
            name = self.rng.choice(self.wrong)
        else:
            name = self.rng.choice(self.forms if action == "replace" else self.targets)
        if action != "replace" and "$" in name:
            return "9a"  # Prometheus takes "to_$1" for a name where nothing is replaced
        return name

    def rule(self):
        rng = self.rng
        action = rng.choice(ACTIONS)
        right = rng.random() < 0.97
        r = {"action": rng.choice([action, action, action.upper(), action.title()])}
        if action == "replace" and rng.random() < 0.3:
            del r["action"]
        named = action not in ("labelmap", "labeldrop", "labelkeep")
        if named or not right:
            r["source_labels"] = rng.sample(self.names, rng.choice([0, 1, 1, 1, 2, 3]))
        if named and action not in ("keepequal", "dropequal") or not right:
            r["separator"] = self.one_of(0.3, ["", "-", ";", "$"])
        if action in ("replace", "keep", "drop") or not right:
            r["regex"] = self.one_of(0.8, PATTERNS[:RIGHT_PATTERNS] if right else PATTERNS)
        if action in ("replace", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal") or not right:
            r["target_label"] = self.target(action, right)
        if action == "replace" or not right:
            r["replacement"] = self.one_of(0.6, FORMS)
        if action == "hashmod" or not right:
            r["modulus"] = rng.choice([1, 2, 7, 1000, 2**40, 2**64 - 1])
        if action == "labelmap" and right:  # of labels that both have
            r["regex"] = rng.choice(self.maps)
            r["replacement"] = rng.choice(["$1", "k_${1}", "m_$1", "m$2${1}"])
        if action == "labeldrop" and right:
            r["regex"] = rng.choice(self.drops)
        if action == "labelkeep" and right:
            r["regex"] = self.keeps
        if not right and rng.random() < 0.2:
            r[rng.choice(["regexp", "target", "Action"])] = "x"
        return {k: v for k, v in r.items() if v is not None}
