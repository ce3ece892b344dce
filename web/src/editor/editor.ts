/** The text of a playbook in CodeMirror. It lives in a shadow root, where its style sheets need no rights of the page. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { post } from "../api/client";
import type { CompletionAnswer, DocumentProblem } from "../api/types";
import { columnOf, unitsOf, wordEnd } from "./positions";

export interface Editor {
  text: () => string;
  setText: (text: string) => void;
  showProblems: (problems: readonly DocumentProblem[]) => void;
  goTo: (line: number, column: number) => void;
  focus: () => void;
  dispose: () => void;
}

interface Handlers {
  onChange: (text: string) => void;
  onSave: () => void;
}

const COMPLETION_TYPES: Record<string, string> = { key: "property", kind: "type", step: "class", task: "method", value: "constant", namespace: "namespace", name: "variable", function: "function" };

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--completed)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--waiting)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--muted)" },
  { tag: [tags.keyword, tags.meta, tags.labelName], color: "var(--running)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px" },
  ".cm-content": { caretColor: "var(--text)", padding: "10px 0" },
  "&.cm-focused": { outline: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "color-mix(in srgb, var(--accent) 28%, transparent) !important" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--hover)", color: "var(--text)" },
  ".cm-matchingBracket": { backgroundColor: "var(--chosen) !important", outline: "1px solid var(--edge)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px", boxShadow: "var(--shadow)", maxWidth: "min(480px, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px", maxHeight: "16em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px", lineHeight: "20px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--chosen)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal", marginLeft: "12px" },
  ".cm-completionInfo": { padding: "8px 10px", fontFamily: "var(--font)", fontSize: "13px" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-diagnostic": { fontFamily: "var(--font)", fontSize: "13px", padding: "6px 10px", borderLeftWidth: "3px" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--failed)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--waiting)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--failed)", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--waiting)", textUnderlineOffset: "3px" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)", fontFamily: "var(--font)" },
  ".cm-panels input, .cm-panels button": { fontFamily: "var(--font)", backgroundImage: "none", background: "var(--surface)", color: "var(--text)", border: "1px solid var(--edge)", borderRadius: "4px" },
  ".cm-foldPlaceholder": { background: "var(--chosen)", border: "0", color: "var(--text)", padding: "0 6px" },
});

/** Types over a selection without the browser's help: that writes inline styles, which the policy forbids. */
const typeOverSelection = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { from, to, empty } = view.state.selection.main;
    const text = event.data;
    if (event.inputType !== "insertText" || !text || empty || view.composing) return false;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type" });
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

/** Words of the server, in its order: it knows the document, its kinds, steps and names. */
async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  if (!context.explicit && !/[\w.{ -]$/.test(before)) return null;
  const controller = new AbortController();
  context.addEventListener("abort", () => controller.abort());
  let answer: CompletionAnswer;
  try {
    const body = { text: context.state.doc.toString(), line: line.number, column: columnOf(line.text, context.pos - line.from) };
    answer = await post<CompletionAnswer>("complete", { body, signal: controller.signal });
  } catch {
    return null;
  }
  if (!answer.items.length) return null;
  return {
    from: line.from + unitsOf(line.text, answer.start),
    to: line.from + unitsOf(line.text, answer.end),
    validFor: /^[\w-]*$/,
    options: answer.items.map((item, index) => ({
      label: item.label,
      type: COMPLETION_TYPES[item.kind],
      detail: item.detail,
      info: item.doc || undefined,
      apply: item.insert,
      boost: Math.max(-99, 99 - index),
    })),
  };
}

export function openEditor(host: HTMLElement, text: string, handlers: Handlers): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const extensions = [
    lineNumbers(),
    lintGutter(),
    foldGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of("  "),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    syntaxHighlighting(colours),
    yaml(),
    autocompletion({ override: [complete], icons: false, activateOnTypingDelay: 150 }),
    search({ top: true }),
    look,
    typeOverSelection,
    EditorView.contentAttributes.of({ "aria-label": "Text of the playbook", spellcheck: "false", tabindex: "0" }),
    keymap.of([
      { key: "Mod-s", preventDefault: true, run: () => (handlers.onSave(), true) },
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...lintKeymap,
      ...searchKeymap,
      ...foldKeymap,
      ...historyKeymap,
      ...defaultKeymap,
      indentWithTab,
    ]),
    EditorView.updateListener.of((update) => update.docChanged && handlers.onChange(update.state.doc.toString())),
  ];
  const view = new EditorView({ parent: root, root, state: EditorState.create({ doc: text, extensions }) });
  return {
    text: () => view.state.doc.toString(),
    setText: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    showProblems: (problems) => showProblems(view, problems),
    goTo: (number, column) => {
      const line = view.state.doc.line(Math.max(1, Math.min(number, view.state.doc.lines)));
      view.dispatch({ selection: { anchor: line.from + unitsOf(line.text, column) }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
      view.focus();
    },
    focus: () => view.focus(),
    dispose: () => view.destroy(),
  };
}

function showProblems(view: EditorView, problems: readonly DocumentProblem[]): void {
  const doc = view.state.doc;
  const diagnostics = problems.map((problem) => {
    const line = doc.line(Math.max(1, Math.min(problem.line, doc.lines)));
    const start = unitsOf(line.text, problem.column);
    return {
      from: line.from + start,
      to: line.from + wordEnd(line.text, start),
      severity: problem.severity,
      message: problem.hint ? `${problem.message}\n${problem.hint}` : problem.message,
      source: problem.code,
    };
  });
  view.dispatch(setDiagnostics(view.state, diagnostics));
}
