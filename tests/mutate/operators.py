"""The mutations of a C source: its tokens, its statements, and what each operator changes in them.

Nothing is mutated in comments, strings, preprocessor lines, assertions, and statements that only log.
"""
import bisect
import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<preprocessor>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<operator>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|[^\s\w])
""", re.X | re.S | re.M)

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+": "-", "-": "+", "+=": "-=", "-=": "+="}
RETURNS = {"0": "-1", "-1": "0", "true": "false", "false": "true"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
TYPES = re.compile(r"(const|static|struct|enum|union|unsigned|signed|int|char|bool|long|short|double|float|void"
                   r"|_Atomic|_Thread_local|va_list|\w+_t)$")
WORDS = {"return", "case", "goto", "sizeof", "if", "while", "for", "switch", "do", "else", "break", "continue",
         "default"}
ASSERTIONS = {"MUST", "assert", "static_assert", "_Static_assert"}
LOGS = re.compile(r"log_(error|warning|notice|info|debug)$")
INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$")


@dataclass(frozen=True)
class Token:
    """A token of the code: no comment, no preprocessor line."""
    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Mutation:
    """Text to put in place of a part of a source; first and last are the lines of its whole statement."""
    operator: str
    start: int
    end: int
    after: str
    line: int
    first: int
    last: int

    def apply(self, source):
        """The source with the mutation; every other line keeps its number."""
        before = source[self.start:self.end]
        missing = before.count("\n") - self.after.count("\n")
        return source[:self.start] + self.after + "\n" * missing + source[self.end:]

    def describe(self, source):
        """`operator: before -> after`, on one line."""
        before = " ".join(source[self.start:self.end].split())
        return f"{self.operator}: {_short(before)} -> {_short(self.after) or '(nothing)'}"


def _short(text):
    return text if len(text) <= 60 else text[:57] + "..."


def tokens_of(source):
    """The tokens of the code, strings among them as tokens that no operator changes."""
    found = []
    for match in TOKEN.finditer(source):
        if match.lastgroup not in ("comment", "preprocessor"):
            found.append(Token(match.lastgroup, match.group(), match.start(), match.end()))
    return found


class Source:
    """A source, its tokens, and the mutations found in it."""

    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.newlines = [at for at, letter in enumerate(text) if letter == "\n"]
        self.pairs = self._match_brackets()
        self.excluded = self._find_excluded()
        self.spans = []  # (first token, token after the last) of each simple statement and condition
        self.in_function = set()
        self.found = []

    def mutations(self):
        """All mutations, in the order of the source."""
        at = 0
        while at < len(self.tokens):
            if self._text(at) == "{" and self._text(at - 1) == ")":
                self.in_function.update(range(at, self.pairs[at]))
                self._statement(at)
            at = self.pairs.get(at, at) + 1 if self._text(at) == "{" else at + 1
        for number in range(len(self.tokens)):
            if number not in self.excluded:
                self._swap(number)
                self._constant(number)
        return sorted(set(self.found), key=lambda mutation: (mutation.start, mutation.end, mutation.operator))

    # ---- tokens ----

    def _text(self, at):
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def _kind(self, at):
        return self.tokens[at].kind if 0 <= at < len(self.tokens) else ""

    def _line(self, offset):
        return bisect.bisect_left(self.newlines, offset) + 1

    def _match_brackets(self):
        pairs, stack = {}, []
        for at, token in enumerate(self.tokens):
            if token.kind == "operator" and token.text in "([{":
                stack.append(at)
            elif token.kind == "operator" and token.text in ")]}" and stack:
                pairs[stack.pop()] = at
        return pairs

    def _find_excluded(self):
        """Tokens of assertions, of statements that only log, and of enumerations."""
        excluded = set()
        for at, token in enumerate(self.tokens):
            if token.text in ASSERTIONS or LOGS.match(token.text):
                excluded.update(range(at, self.pairs.get(at + 1, at) + 1))
            if token.text == "enum":
                brace = at + 1 if self._text(at + 1) == "{" else at + 2
                if self._text(brace) == "{":
                    excluded.update(range(at, self.pairs[brace] + 1))
        return excluded

    # ---- statements ----

    def _statement(self, at):
        """Read the statement that begins at token at; returns the token after it."""
        text = self._text(at)
        if text == "{":
            return self._block(at)
        if text == "if":
            return self._if(at)
        if text in ("while", "for", "switch"):
            return self._loop(at)
        if text == "do":
            end = self._statement(at + 1)
            self._condition(end + 1)
            return self.pairs[end + 1] + 2
        if text in ("case", "default") or (self._kind(at) == "name" and self._text(at + 1) == ":"):
            while self._text(at) != ":":
                at += 1
            return at + 1
        if self._kind(at) == "name" and self._text(at + 1) == "(":
            after = self.pairs[at + 1] + 1
            if self._text(after) == "{":  # a loop that a macro writes
                return self._statement(after)
        return self._simple(at)

    def _block(self, at):
        end = self.pairs[at]
        at += 1
        while at < end:
            at = self._statement(at)
        return end + 1

    def _if(self, at):
        self._condition(at + 1)
        then = self.pairs[at + 1] + 1
        end = self._statement(then)
        if self._text(end) != "else":
            return end
        otherwise = end
        end = self._statement(otherwise + 1)
        if not self.excluded.issuperset(range(otherwise + 1, end - 1)):
            self._add("drop else", otherwise, end, "", otherwise, otherwise + 2)
        return end

    def _loop(self, at):
        if self._text(at) == "while":
            self._condition(at + 1)
        elif self._text(at) == "for":
            self.spans.append((at, self.pairs[at + 1] + 1))
        return self._statement(self.pairs[at + 1] + 1)

    def _condition(self, at):
        """Negate the condition in the brackets at token at."""
        end = self.pairs[at]
        self.spans.append((at, end + 1))
        inside = self.text[self.tokens[at].end:self.tokens[end].start]
        if self.excluded.issuperset(range(at + 1, end)) or inside in ("0", "1", "true", "false"):
            return
        self._add("negate", at, end + 1, f"(!({inside}))", at, end + 1)

    def _simple(self, at):
        """A statement that ends with a semicolon."""
        end = at
        while self._text(end) != ";":
            end = self.pairs.get(end, end) + 1
        self.spans.append((at, end + 1))
        if at in self.excluded:
            return end + 1
        if self._text(at) == "return":
            self._return(at, end)
        elif self._text(at) == "break":
            self._add("skip break", at, end + 1, ";", at, end + 1)
        elif self._is_call(at, end) or self._is_assignment(at, end):
            self._add("drop statement", at, end + 1, ";", at, end + 1)
        return end + 1

    def _return(self, at, end):
        value = "".join(token.text for token in self.tokens[at + 1:end])
        after = "0" if re.match(r"-E[A-Z]+$", value) else RETURNS.get(value)
        if after:
            self.excluded.update(range(at, end))
            self._add("return", at, end + 1, f"return {after};", at, end + 1)

    def _is_call(self, at, end):
        if self._text(at) == "(" and self._text(at + 1) == "void" and self._text(at + 2) == ")":
            at += 3
        while self._kind(at) == "name" and self._text(at + 1) in ("->", "."):
            at += 2
        return self._kind(at) == "name" and self._text(at) not in WORDS and self._text(at + 1) == "(" \
            and self.pairs[at + 1] + 1 == end

    def _is_assignment(self, at, end):
        first, second = self._text(at), self._text(at + 1)
        if first in WORDS or TYPES.match(first) or (self._kind(at) == self._kind(at + 1) == "name"):
            return False
        if first in ("++", "--") or self._text(end - 1) in ("++", "--"):
            return True
        if self._kind(at) == "name" and second == "*" and self._kind(at + 2) == "name":
            return False  # a declaration of a pointer
        depth_end = at
        while depth_end < end:
            if self._text(depth_end) in ASSIGNMENTS:
                return True
            depth_end = self.pairs.get(depth_end, depth_end) + 1
        return False

    # ---- expressions ----

    def _swap(self, at):
        token = self.tokens[at]
        if token.kind != "operator" or token.text not in SWAPS or at not in self.in_function:
            return
        if token.text in ("+", "-") and not self._is_binary(at):
            return
        self._add(token.text, at, at + 1, SWAPS[token.text])

    def _is_binary(self, at):
        before = self._text(at - 1)
        if before == ")":
            start = next(start for start, end in self.pairs.items() if end == at - 1)
            inside = self.tokens[start + 1:at - 1]
            return not (all(TYPES.match(token.text) for token in inside) or self._text(at - 2) == "*")
        return before == "]" or (self._kind(at - 1) in ("name", "number") and before not in WORDS)

    def _constant(self, at):
        match = INTEGER.match(self._text(at)) if self._kind(at) == "number" else None
        if not match or self._text(at - 1) == "[" or self._text(at + 1) == "]":
            return
        if self._text(at - 1) in ("{", "case") and self._text(at + 1) in ("}", ":"):
            return  # an object of zeros; a case
        hexadecimal = match.group(1)[:2].lower() == "0x"
        value = int(match.group(1), 16 if hexadecimal else 10) + 1
        self._add("constant", at, at + 1, (hex(value) if hexadecimal else str(value)) + match.group(2))

    def _add(self, operator, first, after, replacement, span=None, span_after=None):
        if span is None:
            span, span_after = self._span_of(first)
        start, end = self.tokens[first].start, self.tokens[after - 1].end
        self.found.append(Mutation(operator, start, end, replacement, self._line(start),
                                   self._line(self.tokens[span].start), self._line(self.tokens[span_after - 1].end - 1)))

    def _span_of(self, at):
        """The smallest statement or condition with this token; the token itself in a table."""
        around = [span for span in self.spans if span[0] <= at < span[1]]
        return min(around, key=lambda span: span[1] - span[0], default=(at, at + 1))


def mutations_of(text):
    """All mutations of a source, in its order."""
    return Source(text).mutations()
