/* Requests to the server of this page. Bodies are JSON, or FormData for files; every error has a sentence that can be shown. */

/** An answer other than 2xx, or none at all; `status` is 0 where the server did not answer. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Whether an error only says that a newer request took the place of this one. */
export const isSuperseded = (error) => error?.name === "AbortError";

/** `signal` ends all requests, when the view that makes them is left. */
export function makeApi(signal = null) {
  const latest = new Map(); /* key → the AbortController of its newest request */

  /** Return the response; `key`: a newer request of the same key ends this one, which then raises an AbortError. */
  async function send(method, path, body, key) {
    const controller = new AbortController();
    if (key) {
      latest.get(key)?.abort();
      latest.set(key, controller);
    }
    const signals = [controller.signal, ...(signal ? [signal] : [])];
    const options = { method, signal: AbortSignal.any(signals) };
    if (body instanceof FormData) {
      options.body = body; /* files; the browser sets the type */
    } else if (body !== undefined) {
      options.headers = { "Content-Type": "application/json" };
      options.body = JSON.stringify(body);
    }
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (isSuperseded(error)) throw error;
      throw new ApiError("The server does not answer. Is `regard studio` still running?", 0);
    }
    if (!response.ok) throw new ApiError(await problem(response), response.status);
    return response;
  }

  return {
    get: async (path, { key } = {}) => (await send("GET", path, undefined, key)).json(),
    post: async (path, body, { key } = {}) => (await send("POST", path, body, key)).json(),
    /** As `post`, for an answer that is a file. */
    postForFile: async (path, body, { key } = {}) => (await send("POST", path, body, key)).blob(),
  };
}

async function problem(response) {
  try {
    const { error } = await response.json();
    if (error) return error;
  } catch {
    /* not JSON: the status must do */
  }
  return `The server answered ${response.status} ${response.statusText}.`;
}
