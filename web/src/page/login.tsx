import { useState } from "preact/hooks";
import { asProblem } from "../api/client";
import type { ProblemDocument } from "../api/types";
import { navigate, place } from "../router";
import { safeNext, signIn } from "../session";
import { Logo } from "../shell/header";
import { Button, CommandLine, Problem } from "../view/parts";

export default function Login() {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ProblemDocument>();
  const used = place.value.query.has("code");
  const submit = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      await signIn({ token: token.trim() });
      navigate(safeNext(), "replace");
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <main id="main" class="login">
      <form class="panel login-card" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        <div class="row"><Logo /><h1 tabIndex={-1}>Sign in to NoETL</h1></div>
        {used && <p class="notice waiting">This login link was used already, or is too old. On the machine of the server, <code>noetl server login</code> prints another one.</p>}
        {problem && (problem.code === "unauthenticated" ? <p class="notice waiting" role="alert">This token is not valid: it may be mistyped, revoked or expired.</p> : <Problem problem={problem} />)}
        <div class="field">
          <label for="token">Token</label>
          <input id="token" class="input mono" type="password" autocomplete="current-password" autofocus required value={token} onInput={(event) => setToken(event.currentTarget.value)} />
          <span class="help">It is kept in a cookie that scripts cannot read.</span>
        </div>
        <Button kind="primary" type="submit" disabled={busy || !token.trim()}>Sign in</Button>
        <div class="stack tight">
          <span class="small muted">On the machine of the server, this makes one:</span>
          <CommandLine text="noetl token create NAME --role operator" />
        </div>
      </form>
    </main>
  );
}
