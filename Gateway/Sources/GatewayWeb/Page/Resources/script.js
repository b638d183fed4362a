// The status page. Texts come from devices and clients, so they are only ever set as text, never as markup.
"use strict";

const POLL_MILLISECONDS = 2000;
const LONGEST_PAUSE_MILLISECONDS = 15000;
const SILENT_SECONDS = 60;
const CHART = { width: 320, height: 96, left: 30, bottom: 14, lowest: -100, highest: -20 };

const find = (id) => document.getElementById(id);
/** What is known of each device, by its address. */
const devices = new Map();
let lastStatus = null;
/** The counter of advertisements at an earlier time, for the rate. */
let rateStart = null;
let lastReceived = 0;
let pause = POLL_MILLISECONDS;
let timer = null;

// MARK: Elements

/** Makes an element with a class and text. */
function element(tag, className, text) {
    const result = document.createElement(tag);
    if (className) result.className = className;
    if (text !== undefined && text !== null) result.textContent = text;
    return result;
}

function graphic(tag, attributes) {
    const result = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) result.setAttribute(name, value);
    return result;
}

/** Sets a text only if it has changed, so that a selection is kept. */
function setText(target, text) {
    if (target.textContent !== text) target.textContent = text;
}

/** Replaces the children if their content has changed. `key` says what the content is. */
function setChildren(target, key, make) {
    const text = JSON.stringify(key);
    if (target.contentKey === text) return;
    target.contentKey = text;
    target.replaceChildren(...make());
}

// MARK: Words

const number = new Intl.NumberFormat("en");
const readingNumber = new Intl.NumberFormat("en", { useGrouping: false, maximumFractionDigits: 4 });

function ageText(seconds) {
    if (seconds < 3) return "now";
    if (seconds < 90) return `${Math.round(seconds)} s ago`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
    return `${Math.round(seconds / 3600)} h ago`;
}

const words = (name) => name.replaceAll("_", " ");

function valueText(reading) {
    if (typeof reading.value === "boolean") return reading.value ? "on" : "off";
    if (typeof reading.value === "number") return readingNumber.format(reading.value).replace("-", "−");
    return reading.value === null ? "–" : String(reading.value);
}

// MARK: Signal over time

/** Merges the last slots of a device's signal into those that are known. */
function mergeSignal(device, signal, slot, slotCount) {
    const known = device.signal ?? [];
    const shift = slot - (device.slot ?? slot);
    const merged = new Array(slotCount).fill(null);
    for (let index = 0; index < slotCount; index += 1) merged[index] = known[index + shift] ?? null;
    const start = slotCount - signal.length;
    for (let index = 0; index < signal.length; index += 1) merged[start + index] = signal[index];
    device.signal = merged;
    device.slot = slot;
}

/** The path of the values; gaps stay open. A single value is a dot. */
function tracePath(signal, x, y) {
    let path = "";
    let isOpen = false;
    signal.forEach((value, index) => {
        if (value === null) {
            isOpen = false;
            return;
        }
        path += `${isOpen ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
        if (!isOpen) path += "h0.01";
        isOpen = true;
    });
    return path;
}

function clamp(value, low, high) {
    return Math.min(Math.max(value, low), high);
}

function drawSpark(device) {
    const last = Math.max(device.signal.length - 1, 1);
    const x = (index) => 2 + (index / last) * 296;
    const y = (value) => 2 + ((CHART.highest - clamp(value, CHART.lowest, CHART.highest)) / (CHART.highest - CHART.lowest)) * 26;
    device.spark.firstChild.setAttribute("d", tracePath(device.signal, x, y));
}

/** Makes a chart with axes. */
function chart(signal, slotDuration) {
    const { width, height, left, bottom, lowest, highest } = CHART;
    const root = graphic("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img" });
    const minutes = Math.round((signal.length * slotDuration) / 60);
    root.setAttribute("aria-label", `Signal over the last ${minutes} minutes`);
    const last = Math.max(signal.length - 1, 1);
    const x = (index) => left + (index / last) * (width - left - 4);
    const y = (value) => 6 + ((highest - clamp(value, lowest, highest)) / (highest - lowest)) * (height - bottom - 12);
    for (let level = highest; level >= lowest; level -= 40) {
        root.append(graphic("line", { x1: left, x2: width - 4, y1: y(level), y2: y(level) }));
        const label = graphic("text", { x: left - 4, y: y(level) + 3, "text-anchor": "end" });
        label.textContent = String(level);
        root.append(label);
    }
    for (const [index, text, anchor] of [[0, `−${minutes} min`, "start"], [last, "now", "end"]]) {
        const label = graphic("text", { x: x(index), y: height - 3, "text-anchor": anchor });
        label.textContent = text;
        root.append(label);
    }
    root.append(graphic("path", { class: "trace", d: tracePath(signal, x, y) }));
    return root;
}

// MARK: Devices

function makeDevice(address) {
    const root = element("details", "device");
    const summary = element("summary");
    const device = {
        address,
        root,
        name: element("bdi", "name"),
        rssi: element("span", "rssi"),
        addressLine: element("span", "address"),
        age: element("span", "age"),
        readings: element("span", "readings"),
        spark: graphic("svg", { class: "spark", viewBox: "0 0 300 30", preserveAspectRatio: "none", "aria-hidden": "true" }),
        more: element("div", "more"),
    };
    device.spark.append(graphic("path", { class: "trace" }));
    summary.append(device.name, device.rssi, device.addressLine, device.age, device.readings, device.spark);
    root.append(summary, device.more);
    root.addEventListener("toggle", () => drawMore(device));
    return device;
}

function chip(reading) {
    const result = element("span", "chip", `${words(reading.name)} `);
    const value = element("b", null, valueText(reading));
    result.append(value);
    if (reading.unit) result.append(` ${reading.unit}`);
    return result;
}

/** Draws what an opened device shows. */
function drawMore(device) {
    if (!device.root.open || !lastStatus) return;
    const data = device.data;
    const lines = [
        `${number.format(data.advertisements)} advertisements, the last one by ${data.adapter ?? "a former adapter"}`,
        ...data.reports.map((report) => {
            const kind = report.model ? `${report.format}, ${report.model}` : report.format;
            return `${kind}${report.isEncrypted ? ", encrypted" : ""}: ${ageText(report.age)}`;
        }),
    ];
    device.more.replaceChildren(
        chart(device.signal, lastStatus.signal.slotDuration),
        ...lines.map((line) => element("p", null, line)),
    );
}

function updateDevice(data, signal) {
    let device = devices.get(data.address);
    if (!device) {
        device = makeDevice(data.address);
        devices.set(data.address, device);
    }
    device.data = data;
    const isNewSlot = device.slot !== signal.slot;
    mergeSignal(device, data.signal, signal.slot, signal.slotCount);
    setText(device.name, data.name ?? "(no name)");
    setText(device.rssi, data.rssi === null ? "" : `${data.rssi} dBm`.replace("-", "−"));
    setText(device.addressLine, data.isRandom ? `${data.address} (random)` : data.address);
    setText(device.age, ageText(data.age));
    device.root.classList.toggle("silent", data.age > SILENT_SECONDS);
    const readings = data.reports.flatMap((report) => report.readings).filter((reading) => reading.name !== "packet_id");
    setChildren(device.readings, readings, () => readings.map(chip));
    if (isNewSlot) drawSpark(device);
    drawMore(device);
}

const orders = {
    name: (left, right) => {
        const [first, second] = [left, right].map((data) => data.name ?? "￿");
        return first.localeCompare(second) || left.address.localeCompare(right.address);
    },
    rssi: (left, right) => (right.rssi ?? -999) - (left.rssi ?? -999),
    age: (left, right) => left.age - right.age,
};

/** Puts the devices in order. Those with readings come first. */
function arrangeDevices() {
    const text = find("filter").value.trim().toLowerCase();
    const order = orders[find("order").value];
    const isSensor = (data) => data.reports.length > 0;
    const chosen = lastStatus.devices
        .filter((data) => `${data.name ?? ""} ${data.address}`.toLowerCase().includes(text))
        .sort((left, right) => isSensor(right) - isSensor(left) || order(left, right))
        .map((data) => devices.get(data.address).root);
    const list = find("devices");
    const isSame = list.children.length === chosen.length && chosen.every((root, index) => list.children[index] === root);
    if (!isSame) list.replaceChildren(...chosen);
    setText(find("no-devices"), text ? "No device has this text." : "No device was received yet.");
}

function updateDevices(status) {
    const present = new Set(status.devices.map((data) => data.address));
    for (const address of [...devices.keys()]) if (!present.has(address)) devices.delete(address);
    for (const data of status.devices) updateDevice(data, status.signal);
    arrangeDevices();
    find("forgotten").hidden = status.forgottenDevices === 0;
    setText(find("forgotten"), `${number.format(status.forgottenDevices)} devices are not shown any more: there are too many.`);
}

// MARK: Lists

/** Makes an entry of a list: a title, a state beside it, and a line below. */
function entry(title, state, isGood, detail) {
    const result = element("li");
    const row = element("div", "row");
    row.append(element("bdi", null, title), element("span", isGood === null ? "" : isGood ? "good-text" : "bad-text", state));
    result.append(row);
    if (detail) result.append(element("div", "detail", detail));
    return result;
}

const count = (value, one, many) => `${number.format(value)} ${value === 1 ? one : many}`;

function updateLists(status) {
    setChildren(find("adapters"), [status.adapters, status.scanMode], () =>
        status.adapters.map((adapter) => {
            const scan = adapter.isScanning ? `scanning (${status.scanMode})` : "open";
            const state = adapter.isOpen ? scan : "not open";
            const detail = adapter.failure ?? count(adapter.connections, "connection", "connections");
            return entry(adapter.name, state, adapter.isOpen, detail);
        }));
    setChildren(find("connections"), status.connections, () =>
        status.connections.map((connection) => {
            const state = connection.isConnected ? "connected" : "connecting";
            return entry(connection.address, state, connection.isConnected ? true : null, `for the client ${connection.client}`);
        }));
    setChildren(find("clients"), status.clients, () =>
        status.clients.map((client) => {
            const sent = `${number.format(client.forwarded)} advertisements sent, ${number.format(client.dropped)} dropped`;
            const detail = client.receivesAdvertisements ? sent : "receives no advertisements";
            return entry(client.information || "in the handshake", "", null, `${client.address}: ${detail}`);
        }));
    setText(find("no-clients"), status.servesClients ? "No client is connected." : "Clients are not served.");
    const broker = status.broker;
    find("broker-section").hidden = !broker;
    setChildren(find("broker"), broker, () => {
        if (!broker) return [];
        const counts = [`${number.format(broker.delivered)} delivered`, `${number.format(broker.waiting)} waiting`,
            `${number.format(broker.dropped)} dropped`];
        return [entry(broker.address, broker.isConnected ? "connected" : "not connected", broker.isConnected, counts.join(", "))];
    });
    setChildren(find("events"), status.events, () => [...status.events].reverse().map(eventEntry));
}

const BAD_EVENTS = ["adapter_failed", "adapter_reset", "adapter_closed", "scan_restarted", "device_failed", "broker_lost"];

function eventEntry(event) {
    const time = new Date(event.time);
    const isToday = time.toDateString() === new Date().toDateString();
    const title = event.count > 1 ? `${words(event.kind)} (${event.count} times)` : words(event.kind);
    const detail = event.detail ? `${event.subject}: ${event.detail}` : event.subject;
    const result = entry(title, isToday ? time.toLocaleTimeString() : time.toLocaleString(), null, detail);
    if (BAD_EVENTS.includes(event.kind)) result.querySelector("bdi").className = "bad-text";
    return result;
}

// MARK: Updates

function showProblem(text) {
    find("problem").hidden = !text;
    setText(find("problem"), text);
}

function setHealth(text, className) {
    setText(find("health"), text);
    find("health").className = `pill ${className}`;
}

function update(status) {
    lastStatus = status;
    document.title = `${status.name} – Bluetooth gateway`;
    setText(find("name"), status.name);
    setText(find("version"), `ble-gateway ${status.version}`);
    const isHealthy = status.health.status === "ok";
    setHealth(isHealthy ? "healthy" : "failing", isHealthy ? "good" : "bad");
    showProblem(status.health.reasons.join("\n"));
    setText(find("tile-devices"), number.format(status.devices.length));
    setText(find("tile-connections"), `${status.connections.length} of ${status.connectionLimit}`);
    setText(find("tile-clients"), number.format(status.clients.length));
    updateRate(status);
    updateDevices(status);
    updateLists(status);
}

function updateRate(status) {
    const present = { time: Date.parse(status.time), received: status.advertisements.received };
    const seconds = rateStart ? (present.time - rateStart.time) / 1000 : 0;
    if (rateStart && seconds >= 0 && seconds < 1 && present.received >= rateStart.received) return;
    if (seconds >= 1 && present.received >= rateStart.received) {
        setText(find("tile-rate"), `${number.format(Math.round((present.received - rateStart.received) / seconds))}/s`);
    }
    rateStart = present;
}

async function poll() {
    clearTimeout(timer);
    // The document with recent values only is enough if the last answer is newer than they are.
    const isRecent = lastStatus && performance.now() - lastReceived < 40_000;
    try {
        const response = await fetch(isRecent ? "api/recent.json" : "api/status.json", { cache: "no-store" });
        if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
        const status = await response.json();
        lastReceived = performance.now();
        pause = POLL_MILLISECONDS;
        update(status);
    } catch (error) {
        pause = Math.min(pause * 2, LONGEST_PAUSE_MILLISECONDS);
        setHealth("not reachable", "bad");
        showProblem(`The gateway does not answer: ${error.message}`);
    }
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(poll, pause);
}

find("filter").addEventListener("input", () => lastStatus && arrangeDevices());
find("order").addEventListener("change", () => lastStatus && arrangeDevices());
document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else poll();
});
poll();
