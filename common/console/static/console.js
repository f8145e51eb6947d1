// Two small things, neither of them needed: times in the reader's own clock, and rounds that tick by.
'use strict';

const told = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

function localize(root) {
  for (const time of root.querySelectorAll('time[datetime]:not([data-told])')) {
    const when = new Date(time.dateTime);
    if (Number.isNaN(when.getTime())) continue;
    time.dataset.told = 'yes';
    const utc = document.createElement('small');
    utc.textContent = `(${time.textContent})`;
    time.replaceChildren(told.format(when), ' ', utc);
  }
}

// A part of the page that the server writes anew whenever something changes; the last one says that nothing follows.
function follow(part) {
  const source = new EventSource(part.dataset.live);
  source.addEventListener('part', (event) => {
    const fresh = new DOMParser().parseFromString(event.data, 'text/html');
    part.replaceChildren(...fresh.body.childNodes);
    localize(part);
  });
  source.addEventListener('end', () => { source.close(); location.reload(); });
}

localize(document);
document.querySelectorAll('[data-live]').forEach(follow);
