// Nothing of it can be called in device code: files that hold both sides include it.
#pragma once
