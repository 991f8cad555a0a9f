# SPDX-License-Identifier: Apache-2.0
"""Finds the places of a C++ file where the program can be changed, by clang's syntax tree (package python3-clang-14).

Only the bodies of functions and the initializers of constructors are read. A template is read once, as it is written.
"""
import re
from dataclasses import dataclass, field

import clang.cindex as clang
from clang.cindex import CursorKind as K

ORDER = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": (None, "!="), "!=": (None, "==")}
FUNCTIONS = {K.CXX_METHOD, K.FUNCTION_DECL, K.CONSTRUCTOR, K.DESTRUCTOR, K.CONVERSION_FUNCTION, K.FUNCTION_TEMPLATE}
CLASSES = {K.CLASS_DECL, K.STRUCT_DECL, K.CLASS_TEMPLATE, K.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION}
LOOPS = {K.FOR_STMT, K.WHILE_STMT, K.DO_STMT, K.CXX_FOR_RANGE_STMT}
longest = 160  # characters of the text that names a mutant
# What the compiler computes, or never runs.
LEFT_OUT = {K.STATIC_ASSERT, K.TYPE_REF, K.TEMPLATE_REF, K.NAMESPACE_REF, K.PARM_DECL}


@dataclass(frozen=True)
class Mutant:
    """One change: `edit` says how rewrite.py writes it down."""
    file: str
    line: int
    column: int
    function: str
    operator: str
    source: str
    edit: str = field(compare=False)
    start: int = field(compare=False)
    end: int = field(compare=False)
    token: tuple = field(compare=False, default=(0, 0))  # of the binary operator, or of a name that is replaced
    into: str = field(compare=False, default="")         # the operator that takes its place

    @property
    def key(self):
        return (self.file, self.function, self.operator, self.source)


class Finder:
    def __init__(self, name, text, unit):
        self.name, self.unit = name, unit
        self.bytes = text.encode()
        self.text = self.bytes.decode("latin-1")  # offsets of clang count bytes
        self.code = blank(self.text)
        self.plain = blank(self.text, literals=False)
        self.found = []
        self.seen = set()
        self.scope = []
        self.returns_bool = False

    def run(self):
        self.declarations(self.unit.cursor)
        return sorted(self.found, key=lambda m: (m.start, -m.end))

    # ---- positions

    def mine(self, cursor):
        at = cursor.location.file
        return at is not None and at.name == self.unit.spelling

    @staticmethod
    def span(cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def here(self, cursor):
        """Not behind a macro, and as it is written."""
        start, end = self.span(cursor)
        file = cursor.extent.start.file
        return file is not None and file.name == self.unit.spelling and start < end

    def add(self, operator, edit, start, end, token=(0, 0), into="", shown=None):
        if (operator, start, end) in self.seen:
            return
        self.seen.add((operator, start, end))
        before = self.text.rfind("\n", 0, start)
        source = re.sub(r"\s+", " ", self.plain[start:end] if shown is None else shown).strip()
        if len(source) > longest:
            source = source[:longest - 4] + " ..."
        self.found.append(Mutant(self.name, self.text.count("\n", 0, start) + 1, start - before,
                                 "::".join(self.scope), operator, source, edit, start, end, token, into))

    # ---- declarations

    def declarations(self, cursor):
        for child in cursor.get_children():
            if child.kind in FUNCTIONS:
                if self.mine(child):
                    self.function(child)
            elif child.kind.is_declaration() and (cursor.kind == K.TRANSLATION_UNIT and not self.mine(child)) is False:
                named = child.kind not in (K.NAMESPACE, K.UNEXPOSED_DECL, K.LINKAGE_SPEC) and child.spelling
                if child.kind in (K.VAR_DECL, K.FIELD_DECL, K.TYPE_ALIAS_DECL, K.TYPEDEF_DECL):
                    continue
                if named:
                    self.scope.append(child.spelling)
                self.declarations(child)
                if named:
                    self.scope.pop()

    def function(self, cursor):
        name = re.sub(r"<.*", "", cursor.spelling) if not cursor.spelling.startswith("operator") else cursor.spelling
        owner = cursor.semantic_parent
        outside = owner is not None and owner != cursor.lexical_parent and owner.kind in CLASSES
        self.scope.append(f"{owner.spelling}::{name}" if outside else name)
        self.returns_bool = is_bool(cursor.result_type)
        for child in cursor.get_children():
            if child.kind == K.COMPOUND_STMT or (cursor.kind == K.CONSTRUCTOR and child.kind.is_expression()):
                self.visit(child, None)
        self.scope.pop()

    # ---- statements and expressions

    def visit(self, cursor, parent):
        if cursor.kind in LEFT_OUT or not self.here(cursor) and cursor.kind != K.COMPOUND_STMT:
            return
        handler = {K.IF_STMT: self.if_statement, K.RETURN_STMT: self.return_statement,
                   K.CONDITIONAL_OPERATOR: self.conditional, K.UNARY_OPERATOR: self.unary,
                   K.LAMBDA_EXPR: self.lambda_expression, K.CALL_EXPR: self.call}.get(cursor.kind)
        children = list(cursor.get_children())
        if parent is None or parent.kind in LOOPS | {K.COMPOUND_STMT, K.IF_STMT, K.CASE_STMT, K.DEFAULT_STMT}:
            self.statement(cursor, parent)
        if cursor.kind in LOOPS:
            self.loop(cursor, children)
        if cursor.kind in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.CALL_EXPR, K.UNEXPOSED_EXPR):
            self.binary(cursor, children)
        if handler is self.lambda_expression:
            return handler(cursor, children)
        if handler is not None:
            handler(cursor, children)
        for child in children:
            self.visit(child, cursor)

    def in_parentheses(self, cursor):
        """Of `if (...)`, `while (...)`, `for (...)`: where they begin and end. None of `if constexpr`."""
        start, end = self.span(cursor)
        match = re.compile(r"(if|while|for|switch)\s*(constexpr)?\s*").match(self.code, start)
        if match is None or match.group(2) or match.end() >= end or self.code[match.end()] != "(":
            return None
        close = matching(self.code, match.end())
        return (match.end() + 1, close) if close is not None else None

    def end_of_statement(self, end):
        """Behind the semicolon that follows, or None."""
        at = re.compile(r"\s*;").match(self.code, end)
        return at.end() if at else None

    def statement(self, cursor, parent):
        start, end = self.span(cursor)
        if parent is not None and parent.kind in LOOPS | {K.IF_STMT}:  # a body, and not part of the head
            head = self.in_parentheses(parent)
            if head is None or start < head[1]:
                return
        if cursor.kind == K.CXX_FOR_RANGE_STMT:
            return self.add("delete-loop", "statement", start, end,
                            shown=self.plain[start:self.in_parentheses(cursor)[1] + 1])
        stop = self.end_of_statement(end)
        if stop is None:
            return
        if cursor.kind.is_expression():
            self.add("delete", "statement", start, stop)
        elif cursor.kind in (K.BREAK_STMT, K.CONTINUE_STMT):
            self.add("delete", "statement", start, stop)
        elif cursor.kind == K.RETURN_STMT and not list(cursor.get_children()):
            self.add("delete", "statement", start, stop)

    def if_statement(self, cursor, children):
        head = self.in_parentheses(cursor)
        if head is None:
            return
        inside = [c for c in children if head[0] <= c.extent.start.offset and c.extent.end.offset <= head[1]]
        if not inside or not inside[-1].kind.is_expression() or any(c.kind == K.VAR_DECL for c in inside):
            return
        start, end = self.span(inside[-1])
        body = [c for c in children if c.extent.start.offset > head[1]]
        single = len(body) == 1 and (body[0].kind.is_expression() or
                                     body[0].kind in (K.BREAK_STMT, K.CONTINUE_STMT) or
                                     body[0].kind == K.RETURN_STMT and not list(body[0].get_children()))
        self.add_condition(inside[-1], ["force-true"] + ([] if single else ["force-false"]), start, end)

    def add_condition(self, cursor, operators, start, end):
        if not self.compares(cursor):
            operators = ["negate"] + operators
        for operator in operators:
            self.add(operator, operator, start, end)

    def compares(self, cursor):
        """A comparison, which is turned round as such."""
        children = list(cursor.get_children())
        if len(children) == 1 and self.span(children[0]) == self.span(cursor):
            return self.compares(children[0])
        found = self.operator_of(cursor, children)
        return found is not None and found[0] in ORDER

    def loop(self, cursor, children):
        head = self.in_parentheses(cursor)
        if head is None or cursor.kind not in (K.FOR_STMT, K.WHILE_STMT):
            return
        for child in children:
            start, end = self.span(child)
            if end > head[1] or not child.kind.is_expression():
                continue
            if any(c.kind == K.VAR_DECL for c in children) and cursor.kind == K.WHILE_STMT:
                continue
            before = self.code[head[0]:start]
            is_condition = cursor.kind == K.WHILE_STMT or before.count(";") == 1
            if is_condition:
                self.add("force-false", "force-false", start, end)

    def conditional(self, cursor, children):
        if children:
            self.add_condition(children[0], [], *self.span(children[0]))

    def return_statement(self, cursor, children):
        if not children or not children[0].kind.is_expression():
            return
        if (self.returns_bool or is_bool(children[0].type)) and not self.compares(children[0]):
            self.add("flip-return", "negate", *self.span(children[0]))

    def lambda_expression(self, cursor, children):
        before, self.returns_bool = self.returns_bool, False
        for child in children:
            if child.kind == K.COMPOUND_STMT:
                self.visit(child, None)
        self.returns_bool = before

    def unary(self, cursor, children):
        start, end = self.span(cursor)
        if self.code[start:start + 2] not in ("++", "--") and self.code[end - 2:end] not in ("++", "--"):
            return
        if not children or self.end_of_statement(end) and self.begins_statement(start):
            return  # it is deleted as a statement
        if self.code[end:end + 1] == ")" and self.in_for_head(start):
            return  # without its steps no loop ends
        self.add("delete-step", "step", start, end, self.span(children[0]))

    def begins_statement(self, start):
        return re.search(r"[;{})]\s*$", self.code[:start]) is not None

    def in_for_head(self, start):
        depth = 0
        for at in range(start - 1, -1, -1):
            if self.code[at] == ")":
                depth += 1
            elif self.code[at] == "(":
                if depth == 0:
                    return re.search(r"\bfor\s*$", self.code[:at]) is not None
                depth -= 1
            elif self.code[at] in "{}":
                return False
        return False

    def call(self, cursor, children):
        start, end = self.span(cursor)
        match = re.compile(r"std::(max|min)\b(\s*<[^()]*?>)?\s*\(").match(self.code, start)
        if match and end - 1 == matching(self.code, match.end() - 1) and not self.code[match.end():].lstrip().startswith("{"):
            other = "min" if match.group(1) == "max" else "max"
            self.add("min-max", "call", start, end, (start, start + len("std::max")), other)

    def operator_of(self, cursor, children):
        """(text, where it begins, where it ends, left, right) of a binary operator, or None."""
        if cursor.kind not in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.CALL_EXPR, K.UNEXPOSED_EXPR):
            return None
        start, end = self.span(cursor)
        parts = [c for c in children if self.here(c)]
        if len(parts) < 2 or self.span(parts[0])[0] != start or self.span(parts[-1])[1] != end:
            return None
        left, right = self.span(parts[0]), self.span(parts[-1])
        if left[1] > right[0]:
            return None
        gap = self.code[left[1]:right[0]]
        operator = gap.strip()
        if operator not in {*ORDER, "&&", "||", "+", "-", "+=", "-="}:
            return None
        at = left[1] + gap.index(operator)
        return operator, at, at + len(operator), parts[0], parts[-1]

    def binary(self, cursor, children):
        found = self.operator_of(cursor, children)
        if found is None:
            return
        operator, at, behind, left, right = found
        start, end = self.span(cursor)
        if operator in ORDER:
            boundary, turned = ORDER[operator]
            if boundary:
                self.add("boundary", "binary", start, end, (at, behind), boundary)
            self.add("turn", "binary", start, end, (at, behind), turned)
        elif operator in ("&&", "||"):
            self.add("and-or", "logic", start, end, (at, behind), operator)
            for side in (left, right):
                self.add("drop-operand", "true" if operator == "&&" else "false", *self.span(side))
        else:
            if any(is_text(side.type.get_canonical().spelling) or self.code[self.span(side)[0]] == '"'
                   for side in (left, right)):
                return
            into = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}[operator]
            self.add("plus-minus", "binary", start, end, (at, behind), into)


def is_bool(of):
    return of.get_canonical().kind == clang.TypeKind.BOOL


def is_text(spelling):
    return "basic_string" in spelling or "char" in spelling or "basic_ostream" in spelling


def blank(text, literals=True):
    """The same length, without comments and, if asked for, what stands in literals."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                         r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)

    def blanked(match):
        found = match.group(0)
        if found[0] == "/":
            return re.sub(r"[^\n]", " ", found)
        if not literals:
            return found
        if found[0] == "R":
            return '"' + re.sub(r"[^\n]", "_", found[1:-1]) + '"'
        return found[0] + re.sub(r"[^\n]", "_", found[1:-1]) + found[-1]

    return pattern.sub(blanked, text)


def matching(code, at):
    """Where the parenthesis that opens there is closed."""
    depth = 0
    for i in range(at, len(code)):
        if code[i] == "(":
            depth += 1
        elif code[i] == ")":
            depth -= 1
            if depth == 0:
                return i
    return None


def find(path, name, arguments):
    """All mutants of a file. `name` is what they are called by; `arguments` are those of a compiler."""
    path = str(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    language = ["-x", "c++"]
    unit = clang.Index.create().parse(path, [*language, "-std=c++20", "-Wno-pragma-once-outside-header", *arguments])
    fatal = [d for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error]
    if fatal:
        raise RuntimeError(f"{name}: clang cannot read it: {fatal[0].spelling} ({fatal[0].location})")
    return Finder(name, text, unit).run()
