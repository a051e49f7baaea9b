// Python in a thread of its own. It gets {id, call, args} and sends {id, text}; the page sends {base, pyodide, numpy} first.
"use strict";
let reply, python, mounted = false;
const lastLine = (error) => String(error.message || error).trim().split("\n").pop(); // of a traceback
const tell = (stage) => postMessage({ stage });
async function begin({ base, pyodide, numpy }) {
  const code = fetch(new URL("joulemap.zip", base)).then((found) => {
    if (!found.ok) throw new Error(`joulemap.zip: ${found.status}`);
    return found.arrayBuffer();
  });
  importScripts(new URL("pyodide.js", pyodide).href);
  python = await loadPyodide({ indexURL: pyodide });
  tell("Python");
  await python.loadPackage(numpy || "numpy", { messageCallback() {} });
  tell("numpy");
  python.unpackArchive(await code, "zip", { extractDir: "/joulemap" });
  python.runPython("import sys; sys.path.insert(0, '/joulemap')");
  reply = python.pyimport("joulemap.wing.tab.reply");
  tell("joulemap");
}
function mount(files) {
  if (mounted) python.FS.unmount("/own");
  else python.FS.mkdirTree("/own");
  python.FS.mount(python.FS.filesystems.WORKERFS, { files }, "/own");
  mounted = true;
  return "{}";
}
let ready;
onmessage = async ({ data }) => {
  if (data.base) {
    ready = begin(data);
    ready.catch((error) => postMessage({ fault: lastLine(error) }));
    return;
  }
  try {
    await ready;
    postMessage({ id: data.id, text: data.call === "mount" ? mount(data.args[0]) : reply[data.call](...data.args) });
  } catch (error) {
    postMessage({ id: data.id, text: JSON.stringify({ error: lastLine(error) }) });
  }
};
