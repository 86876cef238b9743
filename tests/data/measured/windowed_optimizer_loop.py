# Emulates the chunked (two-slot) optimizer-state step of a training framework with torch's unfused AdamW, in Python,
# beside a bare loop of the same copies and kernels; seconds of each, and the spans of the copies.
import json, sys, time, collections, torch
torch.manual_seed(0)
MB=2**20
sizes=[103022592]+[16777216,33554432,12582912,4194304]*24+[103022592]+[2048]*49
def log(**k): print(json.dumps(k)); OUT.write(json.dumps(k)+"\n"); OUT.flush()
OUT=open(sys.argv[1]+"/wl.jsonl","w")
dev=torch.device("cuda")
def bw():
    n=1<<30
    for sz in (64<<20,512<<20,1<<30):
        a=torch.empty(sz,dtype=torch.uint8,device=dev); b=torch.empty_like(a)
        ha=torch.empty(sz,dtype=torch.uint8,pin_memory=True); hb=torch.empty(sz,dtype=torch.uint8,pin_memory=True)
        s1,s2=torch.cuda.Stream(),torch.cuda.Stream()
        reps=max(1,(4<<30)//sz)
        res={}
        for mode in ("h2d","d2h","both"):
            torch.cuda.synchronize(); t=time.perf_counter()
            for _ in range(reps):
                if mode!="d2h":
                    with torch.cuda.stream(s1): a.copy_(ha,non_blocking=True)
                if mode!="h2d":
                    with torch.cuda.stream(s2): hb.copy_(b,non_blocking=True)
            torch.cuda.synchronize(); dt=time.perf_counter()-t
            res[mode]=sz*reps*(2 if mode=="both" else 1)/dt/1e9
        log(k="bw",bytes=sz,**res)
bw()
total=sum(sizes)
masters=torch.empty(total,device=dev).normal_()
grads=torch.empty(total,device=dev).normal_()
model=torch.empty(total,dtype=torch.bfloat16,device=dev)
params=[];o=0;mviews=[]
for s in sizes:
    p=torch.nn.Parameter(masters.narrow(0,o,s).clone()); p.grad=grads.narrow(0,o,s); params.append(p); mviews.append(model.narrow(0,o,s)); o+=s
del masters
opt=torch.optim.AdamW([{"params":params[:98],"weight_decay":0.1},{"params":params[98:],"weight_decay":0.0}],lr=1e-4)
# state directly on the host
pin={}
t0=time.perf_counter()
for p in params:
    opt.state[p]={"step":torch.tensor(1.0),"exp_avg":torch.zeros(p.numel(),pin_memory=True),"exp_avg_sq":torch.zeros(p.numel(),pin_memory=True)}
    pin[p]={k:opt.state[p][k] for k in ("exp_avg","exp_avg_sq")}
log(k="pin",s=time.perf_counter()-t0)
def chunks(limit):
    if limit==0: return [list(params)]
    out=[];cur=[];b=0
    for p in params:
        n=p.numel()*8
        if cur and b+n>limit: out.append(cur);cur=[];b=0
        cur.append(p);b+=n
    out.append(cur);return out
h2d,d2h=torch.cuda.Stream(),torch.cuda.Stream()
group_of={id(p):i for i,g in enumerate(opt.param_groups) for p in g["params"]}
class Loop:
    def __init__(s,limit,python=True,marks=None): s.chunks=chunks(limit);s.slots=[{},{}];s.next=0;s.python=python;s.marks=marks
    def prefetch(s,ch):
        slot=s.slots[s.next];s.next^=1
        need=0;ent=[]
        for p in ch:
            for k,c in pin[p].items():
                need=(need+63)//64*64; ent.append((p,k,c,need)); need+=c.numel()
        if slot.get("b") is None or slot["b"].numel()<need: slot["b"]=torch.empty(need,device=dev)
        h2d.wait_stream(d2h); h2d.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(h2d):
            if s.marks is not None: e0=torch.cuda.Event(enable_timing=True); e0.record()
            for p,k,c,off in ent:
                v=slot["b"].narrow(0,off,c.numel()); v.copy_(c,non_blocking=True); v.record_stream(h2d); opt.state[p][k]=v
            e=torch.cuda.Event(enable_timing=s.marks is not None);e.record()
            if s.marks is not None: s.marks.append(("in",e0,e))
        return e
    def out(s,ch):
        d2h.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(d2h):
            if s.marks is not None: e0=torch.cuda.Event(enable_timing=True); e0.record()
            for p in ch:
                for k in ("exp_avg","exp_avg_sq"):
                    c=pin[p][k]; g=opt.state[p][k]; c.copy_(g,non_blocking=True); g.record_stream(d2h); opt.state[p][k]=c
            if s.marks is not None:
                e=torch.cuda.Event(enable_timing=True); e.record(); s.marks.append(("out",e0,e))
    def adam(s,ch):
        if s.marks is not None: e0=torch.cuda.Event(enable_timing=True); e0.record()
        if s.python:
            by=collections.defaultdict(list)
            for p in ch: by[group_of[id(p)]].append(p)
            orig=opt.param_groups
            opt.param_groups=[{**orig[i],"params":by[i]} for i in sorted(by)]
            try: opt.step()
            finally: opt.param_groups=orig
        else:
            ps=[p.data for p in ch];gs=[p.grad for p in ch];ms=[opt.state[p]["exp_avg"] for p in ch];vs=[opt.state[p]["exp_avg_sq"] for p in ch]
            torch._foreach_mul_(ps,0.9999); torch._foreach_lerp_(ms,gs,0.1); torch._foreach_mul_(vs,0.95); torch._foreach_addcmul_(vs,gs,gs,0.05)
            sq=torch._foreach_sqrt(vs); torch._foreach_div_(sq,1.0); torch._foreach_add_(sq,1e-8); torch._foreach_addcdiv_(ps,ms,sq,-1e-4)
        if s.marks is not None: e=torch.cuda.Event(enable_timing=True); e.record(); s.marks.append(("adam",e0,e))
    def step(s):
        cur=s.first
        for i,ch in enumerate(s.chunks):
            torch.cuda.current_stream().wait_event(cur)
            nxt=s.prefetch(s.chunks[i+1]) if i+1<len(s.chunks) else None
            s.adam(ch); s.out(ch); cur=nxt
        s.slots=[{},{}];s.next=0
        for p,m in zip(params,mviews): m.copy_(p.data)
    def run(s):
        s.first=s.prefetch(s.chunks[0]); torch.cuda.synchronize(); t=time.perf_counter()
        s.step(); host=time.perf_counter()-t; torch.cuda.synchronize(); return time.perf_counter()-t,host
with torch.no_grad():
    for limit in (512,64,0):
        for python in (True,False):
            l=Loop(limit*MB,python); r=[l.run() for _ in range(5)]
            log(k="loop",mib=limit,python=python,n=len(l.chunks),s=[round(x[0],4) for x in r],host=[round(x[1],4) for x in r])
    base=torch.cuda.Event(enable_timing=True)
    m=[]; l=Loop(512*MB,True,m); l.run(); m.clear(); torch.cuda.synchronize(); base.record(); l.run(); torch.cuda.synchronize()
    log(k="spans",spans=[(k,round(base.elapsed_time(a),2),round(base.elapsed_time(b),2)) for k,a,b in m])
